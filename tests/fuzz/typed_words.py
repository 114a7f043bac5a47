"""A random command line: it trains to one result, or is refused with a way out."""

import random
from pathlib import Path

from tests.fuzz.overrides import SMALL, random_words
from tests.fuzz.runs import FindingError, Runs, good, refusal


def case(runs: Runs, draw: random.Random, place: Path) -> str:
    words = random_words(draw)
    command = runs.run(place / "out", *SMALL, *words)
    if command.code != 0:
        return refusal(command, " ".join(words))
    first = good(command)
    if draw.random() < 0.15:
        again = runs.run(place / "again", *SMALL, *words)
        if again.code != 0 or good(again) != first:
            raise FindingError(f"{words}: the same command has two results")
    return "good"
