"""The runs of figures: each line times each seed, as jobs that the sweep's runner knows."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from fedgm.config import compose
from fedgm.config.identity import identity
from fedgm.errors import RefusedError
from fedgm.results.run import Run
from fedgm.running.folder import locate
from fedgm.study.figure import PaperFigure, read
from fedgm.study.points import Job, SweepPlan
from fedgm.study.sweep_file import SweepFile
from fedgm.tasks.metric import described

Lookup = Callable[[Job], Run | None]
CHOOSING = 0  # the seed on which winners are chosen, so it does not judge them


@dataclass(frozen=True)
class PlannedFigure:
    """A figure with its seeds, the jobs of each line, and the configuration of each line."""

    figure: PaperFigure
    seeds: tuple[int, ...]
    jobs: dict[tuple[str, int], Job]  # (key of the line, seed)
    configs: dict[tuple[str, int], DictConfig]

    @property
    def judging(self) -> tuple[int, ...]:
        """Seeds that enter an interval: not the one on which winners were chosen."""
        return tuple(seed for seed in self.seeds if not (self.figure.has_winners and seed == CHOOSING))

    @property
    def added(self) -> tuple[int, ...]:
        """Those of its seeds that were added after the first results."""
        return tuple(seed for seed in self.judging if seed in self.figure.added)

    @property
    def first(self) -> tuple[int, ...]:
        """Its seeds without those that were added."""
        return tuple(seed for seed in self.seeds if seed not in self.figure.added)

    def judged_now(self, lookup: Lookup) -> "PlannedFigure":
        """The figure without its added seeds until all their runs are there: none is used before."""
        runs = [lookup(self.jobs[line.key, seed]) for line in self.figure.lines for seed in self.added]
        if not self.first or all(run is not None and run.is_done for run in runs):
            return self
        return replace(self, seeds=self.first)

    def choosing(self, key: str) -> Job:
        """A line's run on the seed that chose it, shown beside the others."""
        job = self.jobs[key, self.seeds[0]]
        return replace(job, seed=CHOOSING, folder=job.folder.with_name(f"seed={CHOOSING}"))

    def config(self, key: str) -> DictConfig:
        """Of a line; its seeds differ in nothing else."""
        return self.configs[key, self.seeds[0]]


def seeds_of(figure: PaperFigure, seeds: int | Sequence[int] | None) -> tuple[int, ...]:
    """A number counts from the first seed that may judge: 1 where winners were chosen on seed 0, else 0.

    None: as many as the figure's yaml says.
    """
    if seeds is None:
        return seeds_of(figure, figure.seeds)
    if not isinstance(seeds, int):
        return tuple(dict.fromkeys(seeds))  # a seed named twice is one observation
    first = CHOOSING + 1 if figure.has_winners else 0
    return tuple(range(first, first + seeds))


def make(
    experiment: str, seeds: int | Sequence[int] | None, overrides: Sequence[str], output_dir: str
) -> PlannedFigure:
    """The runs of an experiment's figure."""
    return plan(read(experiment, overrides), seeds, overrides, output_dir)


def plan(
    figure: PaperFigure, seeds: int | Sequence[int] | None, overrides: Sequence[str], output_dir: str
) -> PlannedFigure:
    """Compose every line once; a line that cannot be composed is refused with its name."""
    chosen = seeds_of(figure, seeds)
    jobs: dict[tuple[str, int], Job] = {}
    configs: dict[tuple[str, int], DictConfig] = {}
    for number, line in enumerate(figure.lines):
        words = [f"+experiment={figure.experiment}", *line.overrides, *overrides, f"output_dir={output_dir}"]
        try:
            base = compose(words)
        except RefusedError as error:
            reason = " ".join(str(error).split())
            raise RefusedError(f"{figure.name}, line {line.name}: {' '.join(words)}: {reason}") from None
        for seed in chosen:
            cfg = deepcopy(base)
            OmegaConf.update(cfg, "seed", seed)
            with_seed = (*words, f"seed={seed}")
            values = {"line": f"{figure.name} {line.name}" if figure.number or figure.claims else line.name}
            hash, rounds, every = identity(cfg), int(cfg.rounds), int(cfg.eval.every)
            folder = locate(cfg, with_seed, hash)
            jobs[line.key, seed] = Job(number, seed, dict(values), with_seed, folder, hash, rounds, every)
            configs[line.key, seed] = cfg
    return PlannedFigure(figure, chosen, jobs, configs)


def as_sweep(planned: Sequence[PlannedFigure], overrides: Sequence[str], output_dir: str) -> SweepPlan:
    """All figures as one sweep without rungs, so that its runner and its live table serve here."""
    jobs = {job.key: job for one in planned for job in one.jobs.values()}
    configs = {one.jobs[place].key: cfg for one in planned for place, cfg in one.configs.items()}
    name = ", ".join(one.figure.name for one in planned)
    points = {str(job.values["line"]): job.values for job in jobs.values()}
    metric = described(planned[0].figure.metric, ())
    goal = "maximize" if metric.better == "higher" else "minimize"
    column = f"test/{metric.name}"
    file = SweepFile(Path(name), name, "grid", column, goal, (), tuple(points.values()), None)
    first = next(iter(configs.values()))
    return SweepPlan(
        file, tuple(overrides), tuple(jobs.values()), tuple(configs[key] for key in jobs), str(first.name),
        str(first.algorithm.name), None, str(first.profile.name), Path(output_dir),
    )  # fmt: skip
