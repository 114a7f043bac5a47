"""What every server rule offers: state in, state out, nothing hidden."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from torch import Tensor

Hyper = dict[str, float]  # what a schedule may change from round to round; "eta" is always there
State = dict[str, Tensor]  # flat tensors; the momentum is called "d"


class ServerRule(Protocol):
    """Turns the cohort's mean update D into the next global model.

    A rule is a frozen dataclass in one file, and one yaml that names it by ``_target_``.
    """

    @property
    def hyper(self) -> Hyper:
        """Its values in the first round."""
        ...

    def follow(self, eta: float, first: float) -> Hyper:
        """Its values in a stage of rate ``eta``, when the first stage has rate ``first``."""
        ...

    def gain(self, hyper: Hyper) -> float:
        """What the first update is multiplied by, or nan where that has no meaning."""
        ...

    def init(self, x: Tensor) -> State:
        """State before the first round, for flat parameters ``x``."""
        ...

    def step(self, x: Tensor, state: State, delta: Tensor, hyper: Hyper) -> tuple[Tensor, State]:
        """``(x_{t+1}, state_{t+1})``; the arguments are left untouched."""
        ...


class OnlyEta:
    """For rules of which a schedule may change eta alone: W1 has no meaning for them."""

    eta: float

    @property
    def hyper(self) -> Hyper:
        """eta."""
        return {"eta": self.eta}

    def follow(self, eta: float, first: float) -> Hyper:
        """The new eta."""
        return {"eta": eta}

    def gain(self, hyper: Hyper) -> float:
        """eta, on whatever moves."""
        return hyper["eta"]


@runtime_checkable
class SeesNorms(Protocol):
    """A rule whose hyperparameters depend on how long the clients' updates are (FedExP)."""

    def adapted(self, hyper: Hyper, delta: Tensor, squared: float) -> Hyper:
        """``hyper`` for a round with mean update ``delta`` and mean of |D_i|^2 ``squared``."""
        ...


@runtime_checkable
class SeesAges(Protocol):
    """A rule that must know how old the models are that the clients started from."""

    def aged(self, state: State, ages: Mapping[int, float]) -> State:
        """``state`` for a round whose D has the part ``ages[tau]`` of updates that are tau rounds old."""
        ...


@runtime_checkable
class Logs(Protocol):
    """A rule that adds columns to the rows."""

    def log(self, state: State, hyper: Hyper) -> dict[str, float]:
        """Values by name after a step; a row has them as ``server/<name>``."""
        ...


@runtime_checkable
class Averages(Protocol):
    """A rule that knows a better point to evaluate than the model it sends (``eval.point=average``)."""

    def average(self, x: Tensor, state: State, after: Hyper) -> Tensor:
        """That point, from model and state after a step and the hyperparameters of the next."""
        ...
