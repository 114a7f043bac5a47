"""Past global models, from which stale clients start: bounded, and each kept once."""

from collections import deque

from fedgm.client.rule import State
from fedgm.client.weights import Snapshot


class History:
    """The last ``length`` global models; ``history[tau]`` is the one from tau rounds ago.

    With each goes what the client rule kept at the server in that round: a stale client has fetched both.
    """

    def __init__(self, length: int) -> None:
        self.length = length
        self._models: deque[Snapshot] = deque(maxlen=length)
        self._shared: deque[State] = deque(maxlen=length)

    def __len__(self) -> int:
        return len(self._models)

    def __getitem__(self, tau: int) -> Snapshot:
        return self._models[-1 - tau]

    def shared(self, tau: int) -> State:
        """What the server kept for the client rule tau rounds ago."""
        return self._shared[-1 - tau]

    def push(self, model: Snapshot, shared: State | None = None) -> None:
        """The newest; the oldest goes when there is no more room. All live where the newest does."""
        self._models.append(model)
        self._shared.append(shared or {})
        device = model.x.device
        for place, past in enumerate(self._models):
            if past.x.device != device:  # models that were read back from files
                self._models[place] = Snapshot(*(part.to(device) for part in past))
        for place, state in enumerate(self._shared):
            self._shared[place] = {name: value.to(device) for name, value in state.items()}
