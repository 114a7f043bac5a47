"""Past global models, from which stale clients start: bounded, and each kept once."""

from collections import deque

from fedgm.client.weights import Snapshot


class History:
    """The last ``length`` global models; ``history[tau]`` is the one from tau rounds ago."""

    def __init__(self, length: int) -> None:
        self.length = length
        self._models: deque[Snapshot] = deque(maxlen=length)

    def __len__(self) -> int:
        return len(self._models)

    def __getitem__(self, tau: int) -> Snapshot:
        return self._models[-1 - tau]

    def push(self, model: Snapshot) -> None:
        """The newest; the oldest goes when there is no more room. All live where the newest does."""
        self._models.append(model)
        for place, past in enumerate(self._models):
            if past.x.device != model.x.device:  # models that were read back from files
                self._models[place] = Snapshot(*(part.to(model.x.device) for part in past))
