"""Whatever reads stored runs goes on, and shows nothing as finished that the run has not written."""

import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import fedgm
from fedgm.dashboard.collect import Collector
from fedgm.results.find import below
from tests.e2e.commands import timeless

LONGEST = 60  # seconds of a reader; all of them take a fraction of one


class FindingError(AssertionError):
    """A case that ended neither well nor as a refusal."""


def read_all(home: Path, expected: list[dict], hurts: list[str]) -> None:
    """Every reader once; ``expected`` are the rows of an undisturbed run."""
    with warnings.catch_warnings(), ending():
        warnings.simplefilter("ignore")
        try:
            frame, runs = fedgm.load_runs(home), below(home)
            Collector([home]).collect()
        except Exception as error:
            raise FindingError(f"{hurts}: a reader died of {type(error).__name__}: {error}") from error
    if any("summary.json" in hurt for hurt in hurts):
        return  # it may say anything, also that it is an old one without checksums
    scores = [row["test/acc"] for row in expected if row["test/acc"] is not None]
    for run in runs:
        if run.status == "finished" and [row["test/acc"] for row in run.evaluations] != scores:
            raise FindingError(f"{hurts}: a record with other values is finished")
    if len(frame) and set(frame["status"]) == {"finished"}:
        shown = timeless(frame[list(expected[0])].to_dict("records"))
        if [row["test/acc"] for row in shown] != [row["test/acc"] for row in expected]:
            raise FindingError(f"{hurts}: load_runs shows other values as finished")


@contextmanager
def ending() -> Iterator[None]:
    """A reader that waits for a pipe is interrupted; only a main thread can be."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(signum, frame):
        raise FindingError("a reader does not end")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LONGEST)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
