"""How a command ends: 0, 2 for what is refused, 1 for what failed, 130 for Ctrl-C; a line, no traceback."""

import sys
from collections.abc import Generator
from contextlib import contextmanager

from fedgm.errors import FedGMError

REFUSED, FAILED, INTERRUPTED = 2, 1, 130


@contextmanager
def ends_plainly() -> Generator[None]:
    """Turn errors that a user can act on into a line and an exit code; bugs keep their traceback."""
    try:
        yield
    except KeyboardInterrupt:
        print("stopped; the same command continues", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
    except Exception as error:
        code = exit_code(error)
        if code is None:
            raise
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(code) from None


def exit_code(error: Exception) -> int | None:
    """The code of an error that has one; what Hydra cannot compose is refused as our own checks are."""
    if isinstance(error, FedGMError):
        return error.exit_code
    if isinstance(error, OSError):
        return FAILED
    # Hydra and OmegaConf need not be imported to recognise their errors.
    origins = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return REFUSED if origins & {"hydra", "omegaconf"} else None
