"""A server rule that is not part of fedgm, as a user has it beside a yaml of their own."""

from dataclasses import dataclass

from fedgm.server import GeneralMomentum


@dataclass(frozen=True)
class Own(GeneralMomentum):
    """FedGM under another name."""
