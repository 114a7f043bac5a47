"""The same comparison as a saved W&B workspace, for projects whose runs are on a W&B server."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from fedgm.dashboard.collect import Collection
from fedgm.errors import FedGMError, RefusedError
from fedgm.running.wandb_key import has_key
from fedgm.tasks.metric import scoreboard

NAME = "FedAvg, FedAvgM, FedGM"
MOST_KEYS = 8
MEASURED = ("test/", "train/")


def save(project: str, collection: Collection) -> str:
    """Save the workspace and return its address; metrics and swept keys are those of the stored runs."""
    _require_ready()
    entity, _, name = project.rpartition("/")
    import wandb

    entity = entity or wandb.Api().default_entity
    if not entity:
        raise RefusedError("W&B names no entity for this key. Try --wandb ENTITY/PROJECT")
    try:
        return str(build(entity, name, metrics(collection), swept(collection)).save().url)
    except Exception as error:  # wandb raises classes of its own and of its libraries
        raise FedGMError(f"W&B did not save the workspace: {error}") from error


def build(entity: str, project: str, measured: list[str], keys: list[str]) -> Any:
    """Curves grouped by algorithm with a band over runs, parallel coordinates, and a table of differences."""
    ws, wr = import_module("wandb_workspaces.workspaces"), import_module("wandb_workspaces.reports.v2")
    curves = [
        wr.LinePlot(
            title=metric, x="round", y=[metric], groupby=wr.Config("algorithm"), groupby_aggfunc="mean",
            groupby_rangefunc="minmax", smoothing_show_original=True, max_runs_to_show=100,
        )
        for metric in measured
    ]  # fmt: skip
    columns = [wr.ParallelCoordinatesPlotColumn(metric=wr.Config(key)) for key in keys]
    columns += [wr.ParallelCoordinatesPlotColumn(metric=wr.SummaryMetric(metric)) for metric in measured[:1]]
    sections = [
        ws.Section(name="Curves", panels=curves, is_open=True),
        ws.Section(name="Sweep", panels=[wr.ParallelCoordinatesPlot(columns=columns)], is_open=True),
        ws.Section(
            name="Difference of configurations", panels=[wr.RunComparer(diff_only=True)], is_open=True
        ),
    ]
    grouped = ws.RunsetSettings(groupby=[ws.Config("algorithm")])
    return ws.Workspace(
        entity=entity, project=project, name=NAME, sections=sections, runset_settings=grouped,
        settings=ws.WorkspaceSettings(x_axis="round", max_runs=100),
    )  # fmt: skip


def metrics(collection: Collection) -> list[str]:
    """What the runs measured, the test set first."""
    names = {
        key
        for run in collection.runs
        for row in run.evaluations[:1]
        for key in row
        if key.startswith(MEASURED)
    }
    return sorted(names or scoreboard({}).columns)


def swept(collection: Collection) -> list[str]:
    """Keys of the algorithm, the data and the clients in which the runs differ."""
    starts = ("algorithm.", "schedule.", "participation.", "data.", "local.")
    values: dict[str, set[str]] = {}
    for run in collection.runs:
        for key, value in run.config.items():
            if key.startswith(starts) and not key.endswith(("_target_", ".seed")):
                values.setdefault(key, set()).add(repr(value))
    varying = sorted(key for key, seen in values.items() if len(seen) > 1)
    return varying[:MOST_KEYS] or ["algorithm.eta", "algorithm.beta", "algorithm.nu"]


def _require_ready() -> None:
    if find_spec("wandb_workspaces") is None:
        raise RefusedError("--wandb needs the package wandb-workspaces. Try pip install 'fedgm[workspace]'")
    if not has_key():
        raise RefusedError("--wandb needs an account, and there is no key. Try wandb login")
