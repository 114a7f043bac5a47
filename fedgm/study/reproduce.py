"""From the name of a figure to its picture and its verdict: plan, run what is missing, draw, judge."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedgm.errors import FedGMError
from fedgm.results import archive
from fedgm.results.run import once
from fedgm.screen import Screen
from fedgm.study.figure import choose
from fedgm.study.figure_runs import make
from fedgm.study.reproduction import Reproduction
from fedgm.study.sweep import default_workers, stored_runs

BESIDE = "full"  # the profile that `all --stored` judges beside the default one, where it has rows


def export(works: Sequence[Reproduction], path: Path) -> int:
    """Store what is done in one file; how many runs there were."""
    runs = once(run for work in works for run in work.done)
    archive.write(path, runs.values())
    return len(runs)


def load(
    figure: str | Sequence[str],
    overrides: Sequence[str] = (),
    seeds: int | Sequence[int] | None = None,
    output_dir: str | Path = "outputs",
    stored: str | Path | None = None,
    console: Screen | None = None,
    known: Sequence[str | Path] = (),
) -> Reproduction:
    """Plan the figures; with ``stored``, only results of that file or folder count.

    Results in ``known`` count as done beside those of run folders.
    """
    alone = stored_runs([stored]) if stored is not None else None
    begun = stored_runs(known)
    elsewhere = {key: run for key, run in begun.items() if run.is_done}  # others have no checkpoint here
    experiments = choose(figure) if isinstance(figure, str) else figure
    planned = [make(experiment, seeds, overrides, str(output_dir)) for experiment in experiments]
    return Reproduction(
        planned, tuple(overrides), str(output_dir), console or Screen(), alone, seeds=seeds,
        elsewhere=elsewhere, begun=begun,
    )  # fmt: skip


def load_all(
    figure: str,
    overrides: Sequence[str] = (),
    seeds: int | Sequence[int] | None = None,
    output_dir: str | Path = "outputs",
    stored: str | Path | None = None,
    console: Screen | None = None,
    known: Sequence[str | Path] = (),
) -> list[Reproduction]:
    """``load``; of all stored figures also those with rows of the profile ``full``, unless one was typed."""
    first = load(figure, overrides, seeds, output_dir, stored, console, known)
    typed = any(word.startswith("profile=") for word in overrides)
    if figure != "all" or first.stored is None or typed:
        return [first]
    names = {str(run.facts["name"]) for run in first.stored.values() if run.facts["profile"] == BESIDE}
    if not (beside := [name for name in choose(figure) if name in names]):
        return [first]
    words = [*overrides, f"profile={BESIDE}"]
    return [first, load(beside, words, seeds, output_dir, stored, first.console)]


def conclude(works: Sequence[Reproduction], out: Path) -> list[dict[str, Any]]:
    """Draw and judge; what stands beside the first has a folder of its own, named by its profile."""
    folders = [out, *(out / work.sweep.plan.profile for work in works[1:])]
    return [verdict for work, folder in zip(works, folders, strict=True) for verdict in work.conclude(folder)]


def reproduce(
    figure: str = "all",
    overrides: Sequence[str] = (),
    *,
    seeds: int | Sequence[int] | None = None,
    workers: int | None = None,
    output_dir: str | Path = "outputs",
    stored: str | Path | None = None,
    out: str | Path | None = None,
    console: Screen | None = None,
    known: Sequence[str | Path] = (),
) -> list[dict[str, Any]]:
    """Do what ``fedgm reproduce FIGURE`` does; returns what each verdict.json holds."""
    works = load_all(figure, overrides, seeds, output_dir, stored, console, known)
    count = workers or default_workers()
    for work in works:
        work.show_plan(count, timed=stored is None)
    failed = works[0].run(count) if stored is None else {}
    verdicts = conclude(works, Path(out) if out else folder_of(works[0]))
    if failed:
        reasons = "; ".join(sorted(set(failed.values())))
        raise FedGMError(f"{len(failed)} runs failed ({reasons}); the same command tries them again")
    return verdicts


def folder_of(work: Reproduction) -> Path:
    """``<output_dir>/figures/<profile>[,overrides]``."""
    words = [word for word in work.overrides if not word.startswith(("profile=", "hydra."))]
    name = ",".join([work.sweep.plan.profile, *words]).replace("/", "-")
    return Path(work.output_dir) / "figures" / name
