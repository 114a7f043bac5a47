"""A test waits for what it needs, never for a time; the one limit ends a test that would wait for ever."""

import time
from collections.abc import Callable

PATIENCE = 900.0  # seconds; a machine with other work takes many times as long as an idle one


def until(condition: Callable[[], object], told: Callable[[], str] = str, step: float = 0.01) -> None:
    """Return when the condition holds; what ``told`` says is shown where it never does."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain\n{told()}"
        if step:
            time.sleep(step)
