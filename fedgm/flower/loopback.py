"""A deployment on this machine: SuperLink and SuperNodes on 127.0.0.1, below a keeper that ends them all."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedgm.clock import steady
from fedgm.errors import FedGMError, RefusedError

HOST = "127.0.0.1"
LINK = "loopback"  # what the SuperLink is called in Flower's configuration
RESTARTS = 5  # of one node, which may be killed
STARTING = 120.0  # seconds in which a SuperLink must answer; a busy machine takes a tenth of it
QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1", "FLWR_TRACING_ENABLED": "0"}
TEMPLATE = Path(__file__).parent / "template"


@dataclass
class Loopback:
    """The processes of one deployment; ``home`` has their logs, keys and what nodes keep."""

    home: Path
    nodes: int
    tls: bool
    keeper: "subprocess.Popen[str]"
    port: int = 0
    words: dict[int, str] = field(default_factory=dict[int, str])  # of single nodes
    starts: dict[str, int] = field(default_factory=dict[str, int])  # of each node
    codes: dict[str, int | None] = field(default_factory=dict[str, int | None])
    pids: dict[str, int] = field(default_factory=dict[str, int])

    def start(self) -> None:
        """SuperLink and SuperNodes."""
        self._link()
        for number in range(self.nodes):
            self._node(number)

    def run(self, settings: dict[str, Any], said: Callable[[str], None]) -> int:
        """Run the app to its end, and hand on what the server says; Flower's exit code."""
        app = self.home / "app"
        write_app(app)
        (self.home / "run.toml").write_text("".join(f"{k} = {json.dumps(v)}\n" for k, v in settings.items()))
        self._start(
            "run", ["flwr", "run", str(app), LINK, "--stream", "--run-config", str(self.home / "run.toml")]
        )
        follow = Follow(Path(settings["log"]), said)
        while self.codes.get("run") is None:
            self._ask({"ask": True})
            follow.lines()
            self._look_after_nodes()
            if self.codes.get("superlink") is not None:
                raise FedGMError(
                    f"the SuperLink has ended ({self.log('superlink')}). The same command continues"
                )
            time.sleep(0.2)
        follow.lines()
        return self.codes["run"] or 0

    def log(self, name: str) -> Path:
        """Where a process writes."""
        return self.home / f"{name}.log"

    def _link(self) -> None:
        """The SuperLink, and the address under which Flower's command finds it."""
        self.port = free_port()
        words = ["flower-superlink", "--host", HOST, "--port", str(self.port)]
        words += ["--database", str(self.home / "superlink.db"), "--disable-runtime-dependency-installation"]
        where = f'[superlink]\ndefault = "{LINK}"\n\n[superlink.{LINK}]\naddress = "{HOST}:{self.port}"\n'
        if self.tls:
            keys = self._keys()
            words += ["--ssl-ca-certfile", str(keys / "ca.crt"), "--ssl-certfile", str(keys / "server.pem")]
            words += ["--ssl-keyfile", str(keys / "server.key"), "--enable-supernode-auth"]
            where += f'root-certificates = "{keys / "ca.crt"}"\n'
        else:
            words += ["--insecure"]
            where += "insecure = true\n"
        (self.home / "flwr").mkdir(exist_ok=True)
        (self.home / "flwr" / "config.toml").write_text(where)
        (self.home / "superlink.db").unlink(missing_ok=True)  # what counts is in the run folder
        self._start("superlink", words)
        self._wait_for("superlink", self.port)
        if self.tls:
            for number in range(self.nodes):
                key = self._keys() / f"client-{number}.pub"
                self._finish(
                    f"register-{number}",
                    ["flwr", "supernode", "register", str(key), LINK, "--name", key.stem],
                )

    def _node(self, number: int) -> None:
        name, state = f"node-{number}", self.home / "state" / str(number)
        self.starts[name] = self.starts.get(name, 0) + 1
        words = ["flower-supernode", "--superlink", f"{HOST}:{self.port}", "--host", HOST]
        words += ["--port", str(free_port())]
        config = {"partition-id": number, "state": str(state), "words": self.words.get(number, "")}
        words += ["--node-config", " ".join(f"{key}={json.dumps(value)}" for key, value in config.items())]
        if self.tls:
            keys = self._keys()
            words += ["--root-certificates", str(keys / "ca.crt")]
            words += ["--auth-supernode-private-key", str(keys / f"client-{number}")]
        else:
            words += ["--insecure"]
        self._start(name, words)

    def _look_after_nodes(self) -> None:
        """A node that was killed comes back, as a service manager would bring it back."""
        for number in range(self.nodes):
            name = f"node-{number}"
            if self.codes.get(name) is not None and self.starts[name] <= RESTARTS:
                self._node(number)

    def _keys(self) -> Path:
        make_keys(self.home, self.nodes)
        return self.home / "keys"

    def _start(self, name: str, words: Sequence[str]) -> None:
        program = Path(sys.executable).parent / words[0]
        path = f"{program.parent}{os.pathsep}{os.environ.get('PATH', '')}"
        env = {**QUIET, "FLWR_HOME": str(self.home / "flwr"), "PATH": path}
        order = {
            "words": [str(program), *words[1:]],
            "log": str(self.log(name)),
            "env": env,
            "cwd": str(self.home),
        }
        self._ask({"start": name, **order})

    def _finish(self, name: str, words: Sequence[str]) -> None:
        """Start a command and wait for its end."""
        self._start(name, words)
        while self.codes.get(name) is None:
            time.sleep(0.1)
            self._ask({"ask": True})
        if self.codes[name]:
            raise FedGMError(f"{' '.join(words[:3])} failed. See {self.log(name)}")

    def _wait_for(self, name: str, port: int) -> None:
        deadline = steady() + STARTING
        while True:
            self._ask({"ask": True})
            try:
                socket.create_connection((HOST, port), timeout=1).close()
            except OSError:
                if self.codes.get(name) is not None or steady() > deadline:
                    raise FedGMError(f"the {name} does not start. See {self.log(name)}") from None
                time.sleep(0.1)
            else:
                return

    def _ask(self, order: dict[str, Any]) -> None:
        assert self.keeper.stdin is not None
        assert self.keeper.stdout is not None
        try:
            self.keeper.stdin.write(json.dumps(order) + "\n")
            self.keeper.stdin.flush()
            answer = json.loads(self.keeper.stdout.readline() or '{"error": "it has ended"}')
        except (OSError, ValueError) as error:
            raise FedGMError(f"the keeper of the processes: {error}") from None
        if "error" in answer:
            raise FedGMError(f"the keeper of the processes: {answer['error']}")
        self.codes, self.pids = answer["codes"], answer["pids"]


@dataclass
class Follow:
    """Lines that are added to a file."""

    path: Path
    said: Callable[[str], None]
    place: int = 0

    def lines(self) -> None:
        """Hand on those that are whole and new."""
        if self.path.exists():
            with self.path.open("rb") as file:
                file.seek(self.place)
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            self.place += len(whole)
            for line in whole.decode(errors="replace").splitlines():
                self.said(line)


@contextmanager
def loopback(home: Path, nodes: int, tls: bool) -> Generator[Loopback]:
    """A deployment whose processes end with the block, whatever ends it."""
    if shutil.which("flwr", path=str(Path(sys.executable).parent)) is None:
        raise RefusedError(
            "fedgm deploy needs Flower. Try pip install -c constraints-deploy.txt 'fedgm[flower]'"
        )
    home.mkdir(parents=True, exist_ok=True)
    keeper = subprocess.Popen(
        [sys.executable, "-m", "fedgm.flower.keeper"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is this command's; the keeper sees its pipe close
    )
    try:
        yield Loopback(home.resolve(), nodes, tls, keeper)
    finally:
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        keeper.stdin.close()
        keeper.wait()
        keeper.stdout.close()


def make_keys(folder: Path, nodes: int) -> None:
    """What the template's script makes, for this machine."""
    words = ["sh", str(TEMPLATE / "certificates.sh"), str(nodes), f"IP:{HOST},DNS:localhost"]
    try:
        subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", "").strip().splitlines()
        raise FedGMError(f"--tls needs openssl and ssh-keygen ({[*said, error][0]})") from None


def write_app(folder: Path) -> list[Path]:
    """The app of the template; a file that is there already stays as it is."""
    written: list[Path] = []
    for source in sorted(path for path in TEMPLATE.rglob("*") if path.suffix in (".py", ".sh", ".toml")):
        target = folder / source.relative_to(TEMPLATE)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
            written.append(target)
    return written


def free_port() -> int:
    """A port that nobody uses at this moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]
