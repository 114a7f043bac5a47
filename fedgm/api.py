"""What a notebook needs: run, sweep, reproduce, load_runs, load_model."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedgm.results.find import below
from fedgm.results.run import Run

if TYPE_CHECKING:
    import pandas as pd

    from fedgm.lightning import pl
    from fedgm.running.one_run import RunResult


def run(overrides: Sequence[str] = (), callbacks: Sequence["pl.Callback"] = ()) -> "RunResult":
    """Do what ``python run.py OVERRIDES`` does, but raise :class:`fedgm.errors.FedGMError`, never exit.

    ``callbacks`` (Lightning's, or :class:`fedgm.FederatedCallback`) come after those of the configuration.
    """
    from fedgm.config import compose
    from fedgm.running.start import execute
    from fedgm.screen import Screen

    return execute(compose(overrides), list(overrides), Screen(), callbacks=callbacks)


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
    seeds: int | Sequence[int] | None = None,
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

    >>> frame = load_runs("docs/results/small/fedavg_grid.jsonl")
    >>> len(frame), frame["algorithm"].unique().tolist()
    (250, ['fedavg'])
    >>> frame.groupby("algorithm.eta")["test/acc"].max().round(2).loc[[0.5, 1.0]].tolist()
    [0.34, 0.37]
    """
    import pandas as pd

    frames = [_frame(run, Path(output_dir), config) for run in below(output_dir, all_rows=True)]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _frame(run: Run, home: Path, config: bool) -> "pd.DataFrame":
    """A run's rows, with what tells it apart before them and its configuration behind."""
    import pandas as pd

    frame = pd.DataFrame(run.rows if run.folder is not None else run.evaluations)
    folder = None if run.folder is None else str(run.folder.relative_to(home))
    for key in ("name", "algorithm", "schedule", "participation", "profile", "seed", "status"):
        frame.insert(0, key, run.facts.get(key))
    frame.insert(0, "folder", folder)
    values = {key: [value] * len(frame) for key, value in run.config.items() if config and key not in frame}
    return pd.concat([frame, pd.DataFrame(values, index=frame.index)], axis=1)
