"""The one unit of work that every participation scheme deals in."""

from typing import NamedTuple, Protocol


class ClientTask(NamedTuple):
    """One client's part in one round; synchronous FedGM is staleness 0, ``local.epochs``, weight 1."""

    client: int
    staleness: int  # tau: how many server rounds old the model is that it starts from
    epochs: int  # local work, in units of local.unit
    weight: float  # factor of its delta in the mean (normalisation of uneven work)


class Participation(Protocol):
    """Draws the cohort S_t from (seed, purpose, round) alone."""

    def tasks(self, t: int) -> list[ClientTask]:
        """The cohort of round ``t`` (from 1)."""
        ...
