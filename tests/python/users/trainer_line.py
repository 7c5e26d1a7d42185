# SPDX-License-Identifier: Apache-2.0
"""Trains a line with Hugging Face's Trainer, which knows nothing of Horo; started with --torch-backend horo."""

import sys

import torch
from transformers import PretrainedConfig, PreTrainedModel, Trainer, TrainingArguments


class Line(PreTrainedModel):
    config_class = PretrainedConfig

    def __init__(self, config):
        super().__init__(config)
        self.line = torch.nn.Linear(1, 1)

    def forward(self, x, labels):
        return {"loss": torch.nn.functional.mse_loss(self.line(x), labels)}


class Points(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        x = torch.tensor([index / 32 - 1])
        return {"x": x, "labels": 3 * x}


def main(directory):
    arguments = TrainingArguments(
        directory, use_cpu=True, per_device_train_batch_size=8, num_train_epochs=20, learning_rate=0.1,
        lr_scheduler_type="constant", report_to=[], save_strategy="no", disable_tqdm=True, seed=1,
    )
    model = Line(PretrainedConfig())
    Trainer(model=model, args=arguments, train_dataset=Points()).train()
    backend = torch.distributed.get_backend()
    print(f"{arguments.world_size} ranks, {backend}: slope {model.line.weight.item():.6f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
