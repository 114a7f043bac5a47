"""What a notebook needs: run, sweep, reproduce, load_runs, load_model."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import warn

from fedgm.config.identity import identity_of_stored
from fedgm.results import archive, record, rows, summary

if TYPE_CHECKING:
    import pandas as pd

    from fedgm.lightning import pl
    from fedgm.running.one_run import RunResult


def run(overrides: Sequence[str] = (), callbacks: Sequence["pl.Callback"] = ()) -> "RunResult":
    """Do what ``python run.py OVERRIDES`` does, but raise :class:`fedgm.errors.FedGMError`, never exit.

    ``callbacks`` (Lightning's, or :class:`fedgm.FederatedCallback`) come after those of the configuration.
    """
    from rich.console import Console

    from fedgm.config import compose
    from fedgm.running.start import execute

    return execute(compose(overrides), list(overrides), Console(), callbacks=callbacks)


def sweep(
    file: str | Path,
    overrides: Sequence[str] = (),
    *,
    seeds: Sequence[int] = (0,),
    workers: int | None = None,
    output_dir: str | Path = "outputs",
    stored: Sequence[str | Path] = (),
) -> "pd.DataFrame":
    """Do what ``fedgm sweep FILE OVERRIDES`` does; a line per run, with its swept values and its result."""
    import pandas as pd

    from fedgm.study import sweep as work
    from fedgm.study.display import as_rows

    planned = work.load(file, overrides, seeds, output_dir, stored)
    planned.conclude(planned.run(workers or work.default_workers()))
    return pd.DataFrame(as_rows(planned.results))


def reproduce(
    figure: str = "all",
    overrides: Sequence[str] = (),
    *,
    seeds: int | Sequence[int] = 3,
    workers: int | None = None,
    output_dir: str | Path = "outputs",
    stored: str | Path | None = None,
    out: str | Path | None = None,
    known: Sequence[str | Path] = (),
) -> list[dict[str, Any]]:
    """Do what ``fedgm reproduce FIGURE`` does; returns what each verdict.json holds."""
    from fedgm.study.reproduce import reproduce as work

    return work(
        figure, overrides, seeds=seeds, workers=workers, output_dir=output_dir, stored=stored, out=out,
        known=known,
    )  # fmt: skip


def load_model(run: str | Path, trust: Sequence[str] = ()) -> "pl.LightningModule":
    """The trained module of a run folder, in evaluation mode; ``trust``: packages to build from."""
    from fedgm.running.model import load_model as load

    return load(run, trust)


def load_runs(output_dir: str | Path = "outputs", config: bool = True) -> "pd.DataFrame":
    """All rows of all runs below ``output_dir``: one line per round, with what tells the runs apart.

    Files of stored results (``fedgm sweep FILE --export``) count too, with a line per evaluation. With
    ``config`` every key of the configuration is a column, such as ``algorithm.eta``.
    """
    import pandas as pd

    home, frames = Path(output_dir), list[pd.DataFrame]()
    stored = {run.key: run for run in archive.below(home)}
    for path in sorted(home.rglob("summary.json")):
        known = summary.read(path.parent)
        if not known:
            warn(f"left out, because summary.json is damaged: {path.parent}", stacklevel=2)
            continue
        own = rows.read(path.parent / "metrics.jsonl")
        known["status"] = record.status_now(path.parent, known, own)
        values = record.configuration(path.parent)
        key = identity_of_stored(values, known), int(known.get("seed") or 0)
        if key in stored and stored[key].is_done and known["status"] not in record.DONE:
            continue  # the stored one went to its end
        stored.pop(key, None)
        frames.append(_frame(known, values if config else {}, own))
    for run in stored.values():
        frames.append(_frame(run.facts, run.config if config else {}, run.evaluations))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _frame(known: Mapping[str, Any], values: Mapping[str, Any], found: list[rows.Row]) -> "pd.DataFrame":
    """A run's rows, with what tells it apart before them and its configuration behind."""
    import pandas as pd

    frame = pd.DataFrame(found)
    for key in ("name", "algorithm", "schedule", "participation", "profile", "seed", "status", "folder"):
        frame.insert(0, key, known.get(key))
    own = {key: [value] * len(frame) for key, value in values.items() if key not in frame}
    return pd.concat([frame, pd.DataFrame(own, index=frame.index)], axis=1)
