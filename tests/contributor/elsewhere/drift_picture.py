"""A picture: how far clients drift apart, drawn when a run ends."""

from pathlib import Path

from fedgm.federated.events import FederatedCallback
from fedgm.lightning import pl


class DriftPicture(FederatedCallback):
    """Collects a column and draws it in the style of all pictures."""

    def __init__(self, path: str) -> None:
        self.path, self.drift = Path(path), list[float]()

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.drift.append(trainer.callback_metrics["client/drift"].item())

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        from fedgm.figures import style
        from fedgm.figures.style import save  # matplotlib, which no first round should wait for

        figure = style.sheet(5, 3)
        axes = figure.add_subplot(xlabel="round", ylabel="drift")
        axes.plot(range(1, len(self.drift) + 1), self.drift, color=style.BLUE)
        style.plain(axes)
        style.write_text(figure, "How far clients drift apart", ["The deviation of their updates."])
        save(figure, self.path)
