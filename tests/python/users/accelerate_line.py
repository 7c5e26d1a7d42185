# SPDX-License-Identifier: Apache-2.0
"""Trains a line with Hugging Face Accelerate, which knows nothing of Horo; started with --torch-backend horo."""

import torch
from accelerate import Accelerator


def main():
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(1)
    x = torch.linspace(-1, 1, 64).reshape(-1, 1)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, 3 * x), batch_size=8, shuffle=True)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for _ in range(15):
        for inputs, wanted in loader:
            optimizer.zero_grad()
            accelerator.backward(torch.nn.functional.mse_loss(model(inputs), wanted))
            optimizer.step()
    gathered = accelerator.gather(torch.tensor([float(accelerator.process_index)]))
    weight = accelerator.unwrap_model(model).weight.item()
    backend = torch.distributed.get_backend()
    print(f"{len(gathered)} ranks, {backend}: slope {weight:.6f}", flush=True)
    accelerator.end_training()


if __name__ == "__main__":
    main()
