"""The sweep side of the W&B server on loopback: hands a grid's points to agents, each point once."""

import itertools
import json
from dataclasses import dataclass, field
from typing import Any

import yaml


@dataclass
class Sweep:
    """One sweep: the configuration as the client sent it, and which run has which point."""

    name: str
    project: str
    text: str
    agents: int = 0
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)  # by run id: the point as the agent got it
    started: list[tuple[str, str]] = field(default_factory=list)  # (agent, run) in the order of handing out
    hopeless: set[str] = field(default_factory=set)  # runs that early_terminate has given up

    @property
    def config(self) -> dict[str, Any]:
        return yaml.safe_load(self.text)

    def points(self) -> list[dict[str, Any]]:
        """Every combination, in the order of W&B's own grid search."""
        choices = {k: v.get("values", [v.get("value")]) for k, v in self.config["parameters"].items()}
        return [dict(zip(choices, point, strict=True)) for point in itertools.product(*choices.values())]

    def forget(self, run: str) -> None:
        """What "delete run" does on W&B's page: the grid has the point to give again."""
        del self.runs[run]

    def heartbeat(self, agent: str, running: dict[str, bool]) -> list[dict[str, Any]]:
        """The next point for an agent without a run; its end where no point is left."""
        if running:
            return [{"type": "stop", "run_id": run} for run in running if run in self.hopeless]
        left = [point for point in self.points() if point not in self.runs.values()]
        if not left:
            return [{"type": "exit"}]
        run = f"run{len(self.started)}"
        self.runs[run] = left[0]
        self.started.append((agent, run))
        args = {key: {"value": value} for key, value in left[0].items()}
        return [{"type": "run", "run_id": run, "program": self.config["program"], "args": args}]


@dataclass
class Sweeps:
    """All sweeps of the server, and its answers to what `wandb sweep` and `wandb agent` ask."""

    known: dict[str, Sweep] = field(default_factory=dict)

    def answer(self, operation: str, given: dict[str, Any], entity: dict[str, str]) -> dict[str, Any] | None:
        """The data of a GraphQL answer, or None where the operation is not about sweeps."""
        if operation == "UpsertSweep":
            sweep = Sweep(f"sweep{len(self.known)}", given["projectName"], given["config"])
            self.known[sweep.name] = sweep
            project = {"id": "p", "name": sweep.project, "entity": entity}
            found = {"name": sweep.name, "project": project}
            return {"upsertSweep": {"sweep": found, "configValidationWarnings": []}}
        if operation == "SweepWithRuns":
            sweep = self.known.get(given["sweep"])
            return {"project": {"sweep": sweep and self._described(sweep)}}
        if operation == "CreateAgent":
            sweep = self.known[given["sweep"]]
            sweep.agents += 1
            return {"createAgent": {"agent": {"id": f"{sweep.name}/{sweep.agents}"}}}
        if operation == "Heartbeat":
            sweep = self.known[given["id"].split("/")[0]]
            commands = sweep.heartbeat(given["id"], json.loads(given["runState"]))
            return {"agentHeartbeat": {"agent": {"id": given["id"]}, "commands": json.dumps(commands)}}
        return None

    @staticmethod
    def _described(sweep: Sweep) -> dict[str, Any]:
        method = sweep.config["method"]
        return {
            "id": sweep.name, "name": sweep.name, "method": method, "state": "RUNNING", "config": sweep.text,
            "runs": {"edges": []},
        }  # fmt: skip
