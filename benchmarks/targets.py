"""The table of targets in docs/benchmarks.md, made from what the benchmarks have kept.

python -m benchmarks.targets
"""

from collections.abc import Callable, Iterator
from statistics import median
from typing import Any, NamedTuple

from benchmarks.page import kept, put, rows
from benchmarks.start import FLOWER, HELP, OURS

ONE, TWO = "ours, 1 worker", "ours, 2 workers"
Range = tuple[float, float, float]  # lowest, median, highest


class Target(NamedTuple):
    """A bound, and what was measured: None where nothing was."""

    words: str
    bound: float | None  # None: shown, not asked for
    measured: Range | None
    at_least: bool = True
    unit: str = ""

    def line(self) -> list[str]:
        """As it stands on the page."""
        sign = "at least" if self.at_least else "at most"
        asked = f"{self.words}: {sign} {self.bound:g}{self.unit}" if self.bound is not None else self.words
        if self.measured is None:
            return [asked, "", "not measured"]
        low, middle, high = (f"{value:.3g}" for value in self.measured)
        noise = f" ({low} - {high})" if low != high else ""
        return [asked, f"{middle}{self.unit}{noise}", self.verdict()]

    def verdict(self) -> str:
        """Met or missed, by how much, and whether the range contains the bound."""
        if self.bound is None or self.measured is None:
            return ""
        low, middle, high = self.measured
        if middle >= self.bound if self.at_least else middle <= self.bound:
            return "met"
        noise = "; the range reaches it" if low <= self.bound <= high else ""
        return f"missed by {100 * abs(middle / self.bound - 1):.0f} %{noise}"


def ratio(above: list[float], below: list[float]) -> Range:
    """Of medians; the range is from the worst against the best to the best against the worst."""
    return min(above) / max(below), median(above) / median(below), max(above) / min(below)


def exactly(value: float) -> Range:
    """A number that comes without a range."""
    return value, value, value


def within(results: dict[str, Any], name: str, measure: Callable[[dict[str, Any]], Range]) -> Range | None:
    """Measured on a work; None where that, or one of the variants, was not."""
    try:
        return measure(results[name]["variants"])
    except KeyError:
        return None


def throughput() -> Iterator[Target]:
    """One worker against loops written by hand, and two against one."""
    results = kept("throughput")

    def against(name: str, ours: str, other: str, column: str) -> Range | None:
        return within(results, name, lambda v: ratio(v[ours][column], v[other][column]))

    for name, bound in (("W1", 1.25), ("W2", 1.5), ("small", 1.25)):
        measured = against(name, "ours", "bare", "per_cpu")
        yield Target(f"one worker against the bare loop, {name}", bound, measured)
    for name in ("W1", "W2", "small", "W3", "W4"):
        measured = against(name, "ours", "tricks", "per_cpu")
        yield Target(f"against the bare loop with the same tricks, {name}", 0.97, measured)
    for name in ("W1", "W2", "small"):
        yield Target(
            f"two workers against one, on the clock, {name}", None, against(name, TWO, "ours", "per_second")
        )


def peers() -> Iterator[Target]:
    """Two workers against Flower and pfl-research."""
    results = kept("peers")
    for name, bound in (("W1", 1.4), ("W2", 1.7), ("small", None)):
        for peer in ("Flower", "pfl"):
            rate = within(results, name, lambda v: ratio(v[TWO]["per_second"], v[peer]["per_second"]))  # noqa: B023
            memory = within(results, name, lambda v: ratio(v[TWO]["pss"], v[peer]["pss"]))  # noqa: B023
            yield Target(f"two workers against {peer}, {name}", bound, rate)
            yield Target(f"peak memory against {peer}, {name}", 1, memory, at_least=False)
    for peer in ("Flower", "pfl"):
        cost = within(results, "tiny", lambda v: ratio(v[ONE]["round"], v[peer]["round"]))  # noqa: B023
        yield Target(f"a round of five tiny clients, one worker against {peer}", None, cost)


def rounds() -> Iterator[Target]:
    """What a round costs besides training."""
    cases = {(one["clients"], one["sync"]): one for one in kept("fixed").get("cases", [])}
    few, synced, many = (cases.get(key) for key in ((100, "false"), (100, "true"), (1_000_000, "false")))
    words, unit = "a round of five tiny clients", " ms"
    yield Target(f"{words}, CPU", 10, exactly(few["cpu"]) if few else None, False, unit)
    yield Target(f"{words}, on the clock", 10, exactly(few["wall"]) if few else None, False, unit)
    yield Target(
        f"{words}, `checkpoint.sync`, CPU", None, exactly(synced["cpu"]) if synced else None, False, unit
    )
    for words, key, bound in (("time", "cpu", 1.1), ("memory", "pss", 1.05)):
        grown = exactly(many[key] / few[key]) if few and many else None
        yield Target(f"1,000,000 clients against 100, {words}", bound, grown, at_least=False)
    share = kept("server").get("share")
    words = "server step, aggregation, rows and checkpoint in a W1 round"
    yield Target(words, 2, None if share is None else exactly(100 * share), False, " %")


def others() -> Iterator[Target]:
    """Start, and the cost model of docs/scale.md."""
    seconds = kept("start").get("seconds")
    first = ratio(seconds[OURS], seconds[FLOWER]) if seconds else None
    yield Target("start to first round against Flower", 0.5, first, at_least=False)
    helped = seconds and (min(seconds[HELP]), median(seconds[HELP]), max(seconds[HELP]))
    yield Target("`fedgm --help`", 0.3, helped or None, at_least=False, unit=" s")
    off = [100 * abs(one["said"] / one["measured"] - 1) for one in kept("cost").get("rounds", [])]
    words = "the cost model's error on rounds that it has not seen, the largest"
    yield Target(words, 20, exactly(max(off)) if off else None, False, " %")


def table() -> str:
    """Every target with what was measured."""
    targets = [*throughput(), *peers(), *rounds(), *others()]
    return rows(("target", "measured", ""), [target.line() for target in targets])


def main() -> None:
    print(table())
    put("targets", table())


if __name__ == "__main__":
    main()
