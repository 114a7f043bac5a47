"""Ctrl-C while a command is still importing: a line and exit code 130, no traceback.

Nothing is at work yet that would have to be put in order, and an exception in the middle of somebody's import
comes out as anything.
"""

import os
import signal
import threading
from types import FrameType


def quietly() -> None:
    """From now until :func:`ready`, Ctrl-C ends the process at once."""
    main = threading.current_thread() is threading.main_thread()
    if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def ready() -> None:
    """Imports are over: Ctrl-C is an exception again, and the run knows what to do with it."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(signum: int, frame: FrameType | None) -> None:
    os.write(2, b"stopped before the run began; the same command begins it\n")
    os._exit(0 if os.environ.get("WANDB_SWEEP_ID") else 130)  # a sweep agent takes other codes for failures
