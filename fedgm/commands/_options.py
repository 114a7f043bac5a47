"""Options that several commands have."""

from pathlib import Path

import click

config_dir = click.option(
    "--config-dir",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="A folder with your own yaml files, as for run.py: DIR/experiment/mine.yaml.",
)


def as_words(profile: str | None, config_dir: Path | None) -> list[str]:
    """``--profile`` and ``--config-dir`` as the overrides that every run gets."""
    words = [f"profile={profile}"] if profile else []
    if config_dir is not None:  # absolute: a stored command must not depend on where it was typed
        path = str(config_dir.resolve()).replace("\\", "\\\\").replace("'", "\\'")
        words.append(f"hydra.searchpath=['{path}']")
    return words
