"""What our commands set up around a run, and what importing fedgm leaves alone: signals, streams, warnings.

Ctrl-C while a command is still importing is a line and exit code 130, not a traceback: no run has begun that
would have to be closed, and an exception in the middle of an import may come out as any other error. SIGTERM
(`kill`, `scancel`) means what Ctrl-C means.
"""

import os
import signal
import sys
import threading
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from io import TextIOWrapper
from types import FrameType

STOPS = (signal.SIGINT, signal.SIGTERM)


def quietly() -> None:
    """From now until :func:`ready`, Ctrl-C and SIGTERM end the process; a poor environment ends nothing.

    Pictures are files: a backend that matplotlib does not have would end any import of it. Letters that an
    ASCII terminal does not have become question marks.
    """
    os.environ["MPLBACKEND"] = "agg"
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    main = threading.current_thread() is threading.main_thread()
    for signum in STOPS if main else ():
        if signal.getsignal(signum) in (signal.default_int_handler, signal.SIG_DFL):
            signal.signal(signum, _leave)


def ready() -> None:
    """Imports are over: Ctrl-C and SIGTERM are an exception, and the run knows what to do with it.

    SIGTERM still ends a worker that torchrun or SLURM has started beside the first one: it may wait inside
    torch, where no exception reaches it.
    """
    first = os.environ.get("RANK", os.environ.get("SLURM_PROCID", "0")) == "0"
    for signum in STOPS:
        if signal.getsignal(signum) is _leave:
            ends = signum == signal.SIGTERM and not first
            signal.signal(signum, signal.SIG_DFL if ends else signal.default_int_handler)


def _leave(signum: int, frame: FrameType | None) -> None:
    os.write(2, b"stopped before the run began; the same command begins it\n")
    os._exit(0 if os.environ.get("WANDB_SWEEP_ID") else 130)  # a sweep agent takes other codes for failures


def output_error() -> OSError | None:
    """Why standard output cannot be written, where it cannot: a full disk behind ``>``, a closed pipe.

    A line break is written to find out: what could not be written before is no longer in the buffer. The rest
    is given up, or Python would complain of it again at its end.
    """
    try:
        print(flush=True)
    except OSError as error:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        return error
    return None


@contextmanager
def with_output() -> Generator[None]:
    """For a whole command: a standard output that cannot be written is a line and exit code 1."""
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison] - closed before we began
                sys.stdout.flush()
    except OSError:
        if (error := output_error()) is None:
            raise
        print(f"error: standard output cannot be written ({error.strerror})", file=sys.stderr)
        raise SystemExit(1) from None


@contextmanager
def without_treespec_warning() -> Generator[None]:
    """Hide what torch 2.13 warns Lightning 2.6 of; users of our commands can do nothing about it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*isinstance.treespec, LeafSpec.*")
        yield
