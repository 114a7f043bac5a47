"""A run whose clients are on nodes: the run of a command line, with another cohort."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from omegaconf import OmegaConf

from fedgm.config import compose
from fedgm.config.identity import identity, setup_of
from fedgm.errors import require_fits
from fedgm.flower.cohort import RemoteCohort
from fedgm.flower.live import LiveCohort
from fedgm.flower.post import Post, Terms
from fedgm.running.folder import locate
from fedgm.running.one_run import RunResult
from fedgm.running.start import execute
from fedgm.screen import Screen
from fedgm.seals import name_of

# Of these groups deployments have the plain choice alone: why, and samplers that do not look at the model.
PLAIN = {
    "sending": ("all", "not in deployments: every update has been sent before it is known who should send"),
    "privacy": ("none", "not in deployments: nodes know the seed, and could subtract the noise"),
    "work": ("constant", "not in deployments: nodes do the work of local.* in every round"),
}
CHOOSING = "fedgm.participation.choosing."
LIVE = "fedgm.participation.live.live"  # the scheme of a real clock


def serve(post: Post, words: Sequence[str], terms: Terms, console: Screen | None = None) -> RunResult:
    """Do what ``python run.py WORDS`` does with clients that ``post`` reaches; the same words continue."""
    words = [*words, "trainer.workers=1"]  # the server itself trains nobody
    cfg = compose(words)
    for group, (name, reason) in PLAIN.items():
        require_fits(cfg[group].name == name, group, cfg[group].name, reason, f"{group}={name}")
    sampler = OmegaConf.select(cfg, "participation.sampler") or {}
    ok, key = not str(sampler.get("_target_")).startswith(CHOOSING), "participation/sampler"
    require_fits(ok, key, sampler.get("name"), "not in deployments: it measures clients", f"{key}=uniform")
    mark, keep = identity(cfg), cfg.checkpoint
    cohorts: Any = RemoteCohort
    if cfg.participation["_target_"] == LIVE:
        folder = locate(cfg, words, mark)
        cohorts = partial(LiveCohort, folder, keep.every * keep.keep, keep.sync)
    cohorts = partial(cohorts, post, terms, name_of(mark, cfg.seed), setup_of(cfg))
    return execute(cfg, words, console or Screen(), cohorts=cohorts)
