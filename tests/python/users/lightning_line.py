# SPDX-License-Identifier: Apache-2.0
"""Trains a line with Lightning, with the strategy that the first argument names; prints the learned slope on each rank."""

import sys

import torch

import horo.lightning  # noqa: F401  # registers the strategies

try:
    import lightning.pytorch as pl
except ModuleNotFoundError:
    import pytorch_lightning as pl


class Line(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(1, 1)

    def training_step(self, batch, _index):
        x, y = batch
        return torch.nn.functional.mse_loss(self.line(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.3)


def main(strategy):
    pl.seed_everything(1)
    x = torch.linspace(-1, 1, 64).reshape(-1, 1)
    data = torch.utils.data.TensorDataset(x, 3 * x)
    loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
    trainer = pl.Trainer(
        accelerator="cpu", strategy=strategy, devices=1, max_epochs=15, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )
    model = Line()
    trainer.fit(model, loader)
    samples = len(trainer.train_dataloader.sampler)
    backend = torch.distributed.get_backend()
    weight = model.line.weight.item()
    print(f"{trainer.world_size} ranks, {samples} samples, {backend}: slope {weight:.6f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
