"""A process that has imported everything and forks a fresh ``python run.py ...`` on request.

The forked process is a process like any other (own pid, signals, exit code), it only spares the seconds
of imports, so that tests can afford to kill many. Started by the ``commands`` fixture; one JSON line in,
one JSON line out.
"""

import atexit
import json
import os
import runpy
import signal
import sys
import time
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

ROOT = Path(__file__).parents[2]


def serve() -> dict:
    """Answer requests until stdin ends; in a forked command return what it is to do instead."""
    import_everything()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            answer = {"code": wait(request["wait"], request["timeout"])}
        else:
            pid = os.fork()
            if pid == 0:
                become(request)
                return request
            answer = {"pid": pid}
        print(json.dumps(answer), flush=True)
    sys.exit(0)


def import_everything() -> None:
    """All that a command can ask for: whatever is missing here, every forked command imports again."""
    import wandb  # noqa: F401
    from hydra.core.plugins import Plugins

    import fedgm

    Plugins.instance()  # Hydra imports all plugins that are installed
    for module in walk_packages(fedgm.__path__, "fedgm."):
        if not module.name.endswith("__main__"):
            try:
                import_module(module.name)
            except ModuleNotFoundError as error:
                if error.name != "flwr":  # an extra with a venv of its own
                    raise


def become(request: dict) -> None:
    """What a shell does before it starts a command."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where pytest runs in the background
    out = os.open(request["out"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (out, 1), (out, 2)):
        os.dup2(source, target)
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        del os.environ[name]  # a service of W&B that pytest itself has started would outlive a killed run
    os.environ.update(request["env"])
    os.chdir(ROOT)
    if noted := os.environ.get("FEDGM_TEST_IMPORTS"):  # a file for the names of modules that were missing
        there = set(sys.modules)
        atexit.register(lambda: Path(noted).write_text("\n".join(sorted(set(sys.modules) - there))))
    if odd := request.get("odd"):
        from tests.e2e.odd_process import begin

        begin(odd)


def wait(pid: int, timeout: float) -> int | None:
    """The exit code (negative: the signal), or None after ``timeout`` seconds."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    return None


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    request = serve()
    if request.get("tool"):
        from fedgm.__main__ import command

        sys.argv = ["fedgm", *request["arguments"]]
        command()
    sys.argv = ["run.py", *request["arguments"]]
    runpy.run_path(str(ROOT / "run.py"), run_name="__main__")
