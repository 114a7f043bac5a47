"""Any LightningModule, federated: twenty clients that see different parts of a plane, FedGM at the server."""

import torch

import fedgm
from fedgm.lightning import pl  # pytorch_lightning, also where torchvision's wheel does not fit torch


class Line(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(2, 2)

    def training_step(self, batch, batch_idx):
        return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def validation_step(self, batch, batch_idx):
        self.log("val_acc", (self.net(batch[0]).argmax(1) == batch[1]).float().mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


points = torch.randn(20, 40, 2, generator=torch.manual_seed(0)) + torch.linspace(-3, 3, 20).view(20, 1, 1)
clients = [torch.utils.data.TensorDataset(x, (x[:, 0] > x[:, 1]).long()) for x in points]
trainer = pl.Trainer(max_epochs=20, callbacks=[fedgm.FedGM(eta=1.0, beta=0.9, nu=0.9)])
fedgm.federate(trainer, clients, per_round=5, epochs=2, batch_size=10)
trainer.fit(Line(), val_dataloaders=torch.utils.data.DataLoader(torch.utils.data.ConcatDataset(clients), 100))
print(f"val_acc {trainer.callback_metrics['val_acc']:.3f} after {trainer.current_epoch} rounds")
