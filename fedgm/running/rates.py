"""A server rate that was typed but would not be heard: under stages, eta comes from ``schedule.etas``."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fedgm.config import RunConfig
from fedgm.config.parts import build
from fedgm.errors import ClashError, ConfigError
from fedgm.server import GeneralMomentum, ServerRule


def require_rates_unset(config: RunConfig, rule: ServerRule, overrides: Sequence[str]) -> None:
    """Refuse an override of a parameter that sets nothing but eta, where the schedule has etas of its own.

    Defaults and what an experiment fills in (``paper_momentum``) are nobody's wish and pass. Rules outside
    FedGM's family hear their eta: ``schedule=stages`` multiplies it.
    """
    if "etas" not in config.schedule or not isinstance(rule, GeneralMomentum):
        return
    for name in _typed(overrides):
        value = config.algorithm.get(name)
        if type(value) in (int, float) and _is_rate(config.algorithm, rule, name):
            allowed = (
                f"schedule={config.schedule['name']} takes eta from schedule.etas, so this would not be heard"
            )
            hint = f"leaving algorithm.{name} out and setting schedule.etas, or schedule=constant"
            raise ClashError(f"algorithm.{name}", value, allowed, hint)


def _typed(overrides: Sequence[str]) -> Iterator[str]:
    """Names of the algorithm's parameters that the user set."""
    for override in overrides:
        key = override.split("=")[0].lstrip("+")
        if key.startswith("algorithm."):
            yield key.removeprefix("algorithm.")


def _is_rate(algorithm: Mapping[str, Any], rule: GeneralMomentum, name: str) -> bool:
    """Whether the parameter moves eta alone: at twice its value beta and nu are the same."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a nu outside [0, 1] the rule itself has warned
            other: GeneralMomentum = build({**algorithm, name: 2 * algorithm[name]}, "algorithm")
    except ConfigError:  # twice a beta is often none
        return False
    return (other.beta, other.nu) == (rule.beta, rule.nu) and other.eta != rule.eta
