"""A run in its folder: skip it, continue it or begin it, and record how it ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from fedgm.client.store import ClientStore, require_room
from fedgm.client.weights import FlatWeights
from fedgm.config import RunConfig
from fedgm.config.identity import beside_config, resolved
from fedgm.data.clients import ClientData
from fedgm.errors import FedGMError
from fedgm.federated.callback import FedGM, StopWhenDecided
from fedgm.federated.loop import FederatedLoop, rounds_done
from fedgm.federated.ranks import World, leading, losing, world
from fedgm.federated.workers import StopOnSigterm
from fedgm.lightning import pl
from fedgm.lock import locked
from fedgm.results import rows, summary
from fedgm.results.summary import Status
from fedgm.running import checkpoint, facts, fallback, memory, terminal
from fedgm.running.folder import create, empty, has_config, require_run, restore_config, write_config
from fedgm.running.loggers import round_log
from fedgm.running.model import store_model
from fedgm.running.parts import Parts
from fedgm.running.progress import RoundProgress
from fedgm.running.roundlog import RoundLog
from fedgm.running.trainer import (
    PauseAfter,
    build_module,
    build_trainer,
    fit,
    require_trainer,
    worker_count,
)
from fedgm.running.wandb_run import in_sweep_agent, resolve_mode
from fedgm.screen import Screen
from fedgm.seals import name_of
from fedgm.starting import output_error
from fedgm.tasks import TaskModule


@dataclass(frozen=True)
class RunResult:
    """Where a run is and how it ended."""

    folder: Path
    summary: dict[str, Any]

    @property
    def status(self) -> Status:
        """finished, diverged, paused, failed or stopped."""
        return Status(self.summary["status"])


class OneRun:
    """A run and everything that is needed to finish it."""

    def __init__(
        self, config: RunConfig, cfg: DictConfig, parts: Parts, folder: Path, mark: str, console: Screen,
        alone: bool, callbacks: Sequence[pl.Callback] = (),
    ) -> None:  # fmt: skip
        self.config, self.cfg, self.parts, self.folder, self.console = config, cfg, parts, folder, console
        self.alone, self.callbacks = alone, callbacks  # besides those of the configuration
        resolve_mode(config.track.mode)
        self.static = facts.facts_of(config, parts, folder, mark) | beside_config(cfg)
        self.name = name_of(mark, config.seed)  # in the seals of its files
        self.last = min(config.stop_after or config.rounds, config.rounds)

    def result(self) -> RunResult:
        """What the run comes to; of processes that torchrun or srun has started, the first one decides."""
        others = world()
        if others is None:
            return self._lead()
        if not self.alone:
            raise FedGMError("torchrun and srun start one run: give each run of a multirun or sweep its own")
        if others.rank > 0:
            return self._follow(others)
        with leading(others):
            result = self._lead()
            others.tell({"summary": result.summary})
        return result

    def _follow(self, others: World) -> RunResult:
        """What the other processes do: they train where the first one says so, and write nothing."""
        self.console = Screen(quiet=True)
        word = others.hear()
        if "train" in word:
            self.log = RoundLog(self.folder / "metrics.jsonl", [], {})
            clients, module, store = self._load()
            self._fit(clients, module, store, Path(word["train"]) if word["train"] else None)
            word = others.hear()
        if "failed" in word:
            reason = word["failed"]
            raise FedGMError(f"process {others.rank} of {others.size}: the first one failed ({reason})")
        return RunResult(self.folder, word["summary"])

    def _lead(self) -> RunResult:
        """Find out whether there is something to do, and do it."""
        config, folder = self.config, self.folder
        if summary.complete(folder).get("status") not in summary.DONE:
            require_trainer(config, worker_count(config, self.alone))
        create(folder, config.checkpoint.sync)
        with locked(folder):
            if config.rerun:
                empty(folder)
            if summary.is_damaged(folder):
                self._warn(
                    "summary.json is damaged: the run is continued from its checkpoints, or begun again"
                )
            before = summary.complete(folder)
            if is_done := before.get("status") in summary.DONE:
                summary.require_whole(folder, before)
            require_run(folder, before, self.static["hash"], config.seed)
            if is_done:
                return self._skip(self._with_config(before))
            if fallback.is_paused_at(folder, self.name, before, config.stop_after or inf):
                before = self._with_config(before)
                terminal.closing(self.console, before, folder)
                return RunResult(folder, before)
            return self._run(before)

    def _with_config(self, before: dict[str, Any]) -> dict[str, Any]:
        """The summary, with a config.yaml that it covers."""
        if has_config(self.folder, before):
            return before
        self._warn("config.yaml was changed or is gone: it is written again")
        return restore_config(self.folder, self.cfg, before, self.config.checkpoint.sync)

    def _skip(self, done: dict[str, Any]) -> RunResult:
        """Report a run that is done; a sweep agent still gets its rows, or its sweep would have none."""
        if in_sweep_agent():
            log = round_log(self.config, self.cfg, self.folder, done, self.parts.loggers)
            log.ensure_whole(done.get("initial") or {})
            log.finish(done, failed=False)
        self.console.print("already done (rerun=true starts again):")
        terminal.closing(self.console, done, self.folder)
        return RunResult(self.folder, done)

    def _run(self, before: dict[str, Any]) -> RunResult:
        """Train, and record the end whatever it is."""
        self.log = round_log(self.config, self.cfg, self.folder, self.static, self.parts.loggers)
        ended = self.static
        try:
            sync = self.config.checkpoint.sync
            write_config(self.folder, self.cfg, sync)
            facts.write(self.folder, self.static, Status.RUNNING, sync)
            ended = self._train(before)
        except (KeyboardInterrupt, SystemExit):
            ended = self._give_up(Status.STOPPED, "interrupted; the same command continues it")
            terminal.stopped(self.console, ended)
            raise KeyboardInterrupt from None  # Lightning makes SystemExit of it, which would end a notebook
        except OSError as error:
            ended = self._give_up(Status.FAILED, str(error))
            if not self.folder.exists():  # the first to notice may be a checkpoint
                self.log.require_folder()
            if output := output_error():
                raise FedGMError(
                    f"standard output cannot be written ({output.strerror}). What was computed is kept: "
                    "the same command, with its output elsewhere, continues the run"
                ) from None
            raise FedGMError(
                f"{self.folder}: {error.strerror or error}. What was computed is kept. Make room or give "
                "write permission; then the same command continues the run."
            ) from error
        except BaseException as error:
            ended = self._give_up(Status.FAILED, f"{type(error).__name__}: {error}".splitlines()[0])
            raise
        finally:
            wanted = ended["status"] == Status.STOPPED and in_sweep_agent()  # by early_terminate
            self.log.finish(ended, failed=ended["status"] not in summary.WELL and not wanted)
        terminal.closing(self.console, ended, self.folder)
        return RunResult(self.folder, ended)

    def _train(self, before: dict[str, Any]) -> dict[str, Any]:
        """Load and fit, then write model, curves and summary."""
        config = self.config
        clients, module, store = self._load()
        start = self._continue_from(before, store)
        workers = worker_count(config, self.alone)
        terminal.headline(self.console, self.static, self.static["parameters"], workers, self.folder)
        if others := world():
            others.tell({"train": str(start) if start else None})
        trainer, loop = self._fit(clients, module, store, start)
        self.log.require_folder()
        self.log.ensure_whole(loop.initial)
        if loop.diverged is None and self.last <= rounds_done(trainer) < config.rounds:
            return self._conclude(Status.PAUSED, None, loop.initial)
        if config.eval.point == "average" and loop.diverged is None:  # keep the model that was evaluated
            weights = FlatWeights(module)
            x = weights.read()
            weights.write(x._replace(x=self.parts.engine.average(x.x, config.rounds)))
        store_model(module, self.folder, config.checkpoint.sync)
        early = "a callback stopped it" if rounds_done(trainer) < config.rounds else None
        status = Status.DIVERGED if loop.diverged else Status.FINISHED
        return self._conclude(status, loop.diverged or early, loop.initial)

    def _load(self) -> tuple[ClientData, TaskModule, ClientStore | None]:
        """Data, the module that they decide, and where clients keep their states, if any do."""
        clients = self.parts.load(self.config)
        self.static |= facts.of_data(clients.facts)
        module = build_module(self.config, clients.facts)
        self.static["parameters"] = sum(p.numel() for p in module.parameters())
        return clients, module, self._store(self.static["parameters"])

    def _continue_from(self, before: dict[str, Any], store: ClientStore | None) -> Path | None:
        """The newest good checkpoint; says what a user should know about continuing."""
        path, notes = fallback.newest_good(self.folder, self.name, self.parts.history, store)
        if path is not None:
            notes.append(f"continuing after round {checkpoint.round_of(path)}")
            if changed := summary.changes(before, self.static):
                notes.append(f"warning: begun with another program ({'; '.join(changed)})")
        for note in notes:
            self._warn(note)
        return path

    def _warn(self, note: str) -> None:
        self.console.print(f"  {note}", style="yellow", soft_wrap=True)

    def _fit(
        self, clients: ClientData, module: TaskModule, store: ClientStore | None, start: Path | None
    ) -> tuple[pl.Trainer, FederatedLoop]:
        """All rounds from ``start``, in this process and in those that share them."""
        config, workers = self.config, worker_count(self.config, self.alone)
        title = f"{self.static['algorithm']} seed {config.seed}"
        live = self.console.is_terminal and self.alone
        saver = checkpoint.RoundCheckpoint(
            self.folder / "checkpoints", config.checkpoint.every, config.checkpoint.keep, self.last, store,
            config.checkpoint.sync, self.name,
        )  # fmt: skip
        ends = next((each for each in self.callbacks if isinstance(each, StopWhenDecided)), None)
        callbacks: list[pl.Callback] = [
            FedGM(self.parts.engine),
            self.log,
            RoundProgress(self.console, title, live, self.last, self.parts.board, ends),
            PauseAfter(self.last),
            StopOnSigterm(),
            *self.parts.callbacks,
            *self.callbacks,
            saver,
        ]
        trainer = build_trainer(config, callbacks, workers, self.log.loggers, self.name, self.folder)
        with memory.kept(config.trainer.keep_memory), losing(world()):  # the data have been loaded before
            return trainer, fit(
                config, self.parts, trainer, module, clients, str(start) if start else None, store
            )

    def _store(self, parameters: int) -> ClientStore | None:
        """Where clients keep their states, if the rule has any; says what that will cost."""
        c, parts = self.config, self.parts
        keepers = {
            c.client["name"]: parts.client.keeps,
            c.upload["name"]: parts.upload.keeps,
            f"local.state={c.local.state}": 2 * (c.local.state == "keep"),  # AdamW; others have fewer
        }
        if not (vectors := sum(keepers.values())) or parts.cohorts:  # clients elsewhere keep theirs there
            return None
        versions = min(c.checkpoint.every * c.checkpoint.keep + 2, c.rounds)
        clients = min(c.clients.count, c.rounds * c.clients.per_round)
        cost = require_room(self.folder, clients, 4 * parameters * vectors, versions)
        who = ", ".join(name for name, kept in keepers.items() if kept)
        self.console.print(f"  {who} keeps {cost}")
        home, kept = self.folder / "checkpoints" / "clients", c.checkpoint
        return ClientStore(home, kept.every, kept.keep, kept.sync, self.name)

    def _conclude(self, status: Status, reason: str | None, initial: dict[str, float]) -> dict[str, Any]:
        """Curves, summary, then the checkpoints go: a kill in between only repeats this."""
        from fedgm.figures import curves  # matplotlib: half a second that no first round should wait for

        stored = rows.read(self.folder / "metrics.jsonl")
        clients = sum(row["cohort/clients"] or 0 for row in stored)
        steps = sum(row["cohort/steps"] or 0 for row in stored) / clients if clients else 0.0
        more: dict[str, Any] = {"initial": initial, "reason": reason, "local_steps": steps}
        self.static |= facts.of_plan(self.parts.engine.plan)
        board = self.parts.board
        drawn = {**self.static, **rows.summarise(stored, board), **more, "status": status}
        title = f"{drawn['name']}: {drawn['algorithm']}, {drawn['schedule']} schedule"
        ends, picture = self.parts.engine.plan.ends, self.folder / "curves.png"
        words = terminal.caption(drawn, resolved(self.cfg))
        curves.draw(picture, stored, ends, title, words, board, initial, str(drawn["algorithm"]))
        ended = facts.write(self.folder, self.static, status, self.config.checkpoint.sync, **more)
        if status in summary.DONE:
            checkpoint.discard(self.folder / "checkpoints")
        return ended

    def _give_up(self, status: Status, reason: str) -> dict[str, Any]:
        """Record a failure; a full disk may refuse even this and must not hide the cause."""
        try:
            return facts.write(self.folder, self.static, status, reason=reason)
        except OSError:
            return {**self.static, "status": status, "reason": reason}
