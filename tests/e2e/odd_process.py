"""What a command may find when it begins: no working directory, no room, no rights, another clock."""

import ctypes
import os
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.clocks.sitecustomize import unreliable

CAPABILITIES = 0x20080522  # the version of the kernel's interface


def begin(odd: dict[str, Any]) -> None:
    """Make the surroundings of this process as asked for."""
    if "cwd" in odd:
        _move(odd["cwd"])
    for name, most in odd.get("limits", {}).items():
        kind = getattr(resource, f"RLIMIT_{name}")
        resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))
    if "memory" in odd:
        limit_memory(odd["memory"])
    if "umask" in odd:
        os.umask(odd["umask"])
    if "ignored" in odd:
        signal.signal(signal.Signals[odd["ignored"]], signal.SIG_IGN)
    if "encoding" in odd:
        sys.stdout.reconfigure(encoding=odd["encoding"])  # pyright: ignore[reportAttributeAccessIssue]
        sys.stderr.reconfigure(encoding=odd["encoding"])  # pyright: ignore[reportAttributeAccessIssue]
    if "clock" in odd:
        for name, clock in unreliable(*map(float, odd["clock"])).items():
            setattr(time, name, clock)
    if odd.get("out") == "closed":
        os.close(1)
    elif "out" in odd:
        os.dup2(os.open(odd["out"], os.O_WRONLY), 1)
    if odd.get("powerless"):
        drop_rights()


def _move(kind: str) -> None:
    """To a folder that is deleted, or that nobody may write to."""
    folder = Path(tempfile.mkdtemp())
    os.chdir(folder)
    if kind == "deleted":
        folder.rmdir()
    else:
        folder.chmod(0o500)


def limit_memory(more: int) -> None:
    """So many bytes besides those that the process has."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + more, resource.getrlimit(resource.RLIMIT_AS)[1]))


Rights = ctypes.c_uint32 * 6


def drop_rights() -> Rights:
    """Root without its rights over files: what may not be read cannot be; returns those it had."""
    libc, header, before = ctypes.CDLL(None), (ctypes.c_uint32 * 2)(CAPABILITIES, 0), Rights()
    libc.capget(header, before)
    less = Rights(*before)
    less[0] = less[3] = 0  # those in effect; the others say what may come back
    libc.capset(header, less)
    return before


def restore_rights(rights: Rights) -> None:
    """Of the thread that dropped them."""
    ctypes.CDLL(None).capset((ctypes.c_uint32 * 2)(CAPABILITIES, 0), rights)
