"""How the data of the runs is split over clients, drawn again from their configuration."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedgm.dashboard.collect import Collection
from fedgm.errors import RefusedError
from fedgm.results.run import Run

SHOWN = 60  # clients drawn one by one
MOST = 6  # splits on a page


def splits(collection: Collection, trust: Sequence[str] = ()) -> tuple[list[dict[str, Any]], list[str]]:
    """A table of class counts for each split that the runs have, and what could not be drawn."""
    runs: dict[str, list[Run]] = {}
    for run in collection.runs:
        if run.folder is not None and run.config:
            runs.setdefault(_key(run), []).append(run)
    tables: list[dict[str, Any]] = []
    notes = [f"{len(runs) - MOST} more splits of data over clients"] if len(runs) > MOST else []
    for members in list(runs.values())[:MOST]:
        folder = members[0].folder
        try:
            tables.append({**_table(folder, trust), "runs": len(members)} if folder else {})
        except Exception as error:  # whatever a stranger's folder asks for: the page shows the others
            notes.append(f"the split of {len(members)} runs ({type(error).__name__}: {error})")
    return tables, notes


def _key(run: Run) -> str:
    """What a split depends on."""
    parts = {key: value for key, value in run.config.items() if key.startswith(("data.", "clients.count"))}
    return json.dumps(parts, sort_keys=True, default=str)


def _table(folder: Path, trust: Sequence[str]) -> dict[str, Any]:
    """Class counts of the first clients, and the sizes of all that are counted."""
    from fedgm.config import reopened
    from fedgm.data.federation import Federation
    from fedgm.data.partition import label_counts
    from fedgm.running.parts import load_clients

    config = reopened(folder, trust)
    clients = load_clients(config)
    if not isinstance(clients, Federation):
        raise RefusedError(f"data={config.data.name} has no labels to draw")
    d, images = config.data, clients.images
    shown = min(clients.count, SHOWN)
    counts = label_counts(clients.partition, images.train_labels.numpy(), images.classes, shown)
    return {
        "title": f"{d.name}, {d.partition}, α = {d.alpha:g}, seed {d.seed}",
        "clients": clients.count,
        "classes": [str(name) for name in images.class_names],
        "counts": [[int(count) for count in row] for row in counts],
    }
