"""A run's configuration as the theorems see it, and the theorems that apply to it."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import click

from fedgm.client.rules import Plain
from fedgm.config import RunConfig
from fedgm.data.clients import local_steps
from fedgm.errors import FedGMError, RefusedError
from fedgm.running.assemble import build_participation, build_rule, build_server, load_federation
from fedgm.server.rule import SeesNorms
from fedgm.theory import (
    Problem,
    Report,
    Setting,
    Training,
    Variant,
    arrives_uniformly,
    corollary,
    diagnose,
    local_work,
    require_covered,
    theorem1,
    theorem2,
    theorem3,
    theory_stages,
)
from fedgm.theory.setting import setting


def setting_of(config: RunConfig) -> Setting:
    """A configuration in the theorems' symbols; K, m and tau are those of the tasks that its run has."""
    return covered_setting(config)[0]


def covered_setting(config: RunConfig) -> tuple[Setting, bool]:
    """The setting, and whether clients arrive uniformly; what no theorem covers is refused first."""
    server, plan = build_server(config)
    if isinstance(server, SeesNorms):
        raise RefusedError("the theorems cover FedGM, whose eta no update changes. Try algorithm=fedgm")
    stages = theory_stages(plan)
    rule, local, name = build_rule(config), config.local, str(config.client["name"])
    plain, optimizer = type(rule) is Plain, local.optimizers[local.optimizer]
    require_covered(
        Training(
            name,
            plain,
            rule.sends,
            optimizer,
            local.clip,
            config.clients.weights,
            config.participation,
            str(config.upload["name"]),
        )
    )
    federation = load_federation(config)
    scheme = build_participation(config, federation)

    def steps(client: int, epochs: int) -> int:
        return local_steps(federation, client, epochs, local.unit)

    work = local_work(scheme, steps, config.rounds)
    return setting(work, config.clients.count, local.lr, stages), arrives_uniformly(scheme)


def reports(
    theorem: str,
    uniform: bool,
    problem: Problem,
    setting: Setting,
    variant: Variant,
) -> Iterator[Report]:
    """The theorem asked for, or all that apply; ``auto`` is the corollary unless arrival is uniform."""
    theorems: dict[str, Callable[..., Report]] = {
        "1": theorem1, "2": theorem2, "3": theorem3, "nonuniform": _corollary
    }  # fmt: skip
    if theorem != "all":
        chosen = _corollary if theorem == "auto" and not uniform else diagnose
        yield theorems.get(theorem, chosen)(problem, setting, variant)
        return
    for name, one in theorems.items():
        try:
            yield one(problem, setting, variant)
        except FedGMError as error:
            click.echo(f"Theorem {name}: {error}", err=True)


def _corollary(problem: Problem, setting: Setting, variant: Variant) -> Report:
    """The corollary with the sigma_g that its proof needs, that of the most different client, if known."""
    if problem.sigma_max is not None and problem.sigma_max > problem.sigma_g:
        note = f"sigma_g is that of the client that differs most, {problem.sigma_max:.3g}."
        problem = replace(problem, sigma_g=problem.sigma_max)
        setting = replace(setting, notes=(*setting.notes, note))
    return corollary(problem, setting, variant)
