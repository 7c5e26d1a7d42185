# SPDX-License-Identifier: Apache-2.0
"""A training written for Horovod, without any change for Horo. It continues from its checkpoint and
prints OK once."""

import argparse
import os

import torch
import torch.nn.functional as F

import horovod
import horovod.torch as hvd
from horovod.common.exceptions import HorovodInternalError
from horovod.torch.mpi_ops import is_homogeneous

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--fp16-allreduce", action="store_true")
parser.add_argument("--use-adasum", action="store_true")
parser.add_argument("--batches-per-allreduce", type=int, default=1)
parser.add_argument("--gradient-predivide-factor", type=float, default=1.0)
parser.add_argument("--checkpoint", default="")
args = parser.parse_args()

hvd.init()
torch.manual_seed(42)
assert issubclass(HorovodInternalError, RuntimeError) and is_homogeneous()
assert horovod.__version__ and callable(horovod.run)
assert hvd.mpi_built() or hvd.gloo_built() or hvd.size() >= 1
torch.set_num_threads(1)

x = torch.randn(240, 8)
y = (x.sum(1) > 0).long()
sampler = torch.utils.data.distributed.DistributedSampler(
    torch.utils.data.TensorDataset(x, y), num_replicas=hvd.size(), rank=hvd.rank()
)
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(x, y), batch_size=10, sampler=sampler
)

model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
lr_scaler = args.batches_per_allreduce * hvd.size() if not args.use_adasum else 1
optimizer = torch.optim.SGD(model.parameters(), lr=0.02 * lr_scaler, momentum=0.5)

resume_from_epoch, state = 0, None
if args.checkpoint and hvd.rank() == 0 and os.path.exists(args.checkpoint):
    state = torch.load(args.checkpoint)
    resume_from_epoch = state["epoch"]
resume_from_epoch = hvd.broadcast(
    torch.tensor(resume_from_epoch), root_rank=0, name="resume_from_epoch"
).item()
optimizer = hvd.DistributedOptimizer(
    optimizer,
    named_parameters=model.named_parameters(),
    compression=hvd.Compression.fp16 if args.fp16_allreduce else hvd.Compression.none,
    backward_passes_per_step=args.batches_per_allreduce,
    op=hvd.Adasum if args.use_adasum else hvd.Average,
    gradient_predivide_factor=args.gradient_predivide_factor,
)
if state is not None:
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)


def metric_average(value, name):
    return hvd.allreduce(torch.tensor(value), name=name).item()


class Metric:
    """The average of a metric over ranks and batches, under one name."""

    def __init__(self, name):
        self.name, self.sum, self.count = name, torch.tensor(0.0), 0

    def update(self, value):
        self.sum += hvd.allreduce(value.detach().cpu(), name=self.name)
        self.count += 1


for epoch in range(resume_from_epoch, args.epochs):
    model.train()
    losses = Metric("train_loss")
    sampler.set_epoch(epoch)
    step = 0
    optimizer.zero_grad()
    for data, target in loader:
        loss = F.cross_entropy(model(data), target)
        losses.update(loss)
        loss.div_(args.batches_per_allreduce)
        loss.backward()
        step += 1
        if step % args.batches_per_allreduce == 0:
            optimizer.synchronize()
            if not args.use_adasum:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
                with optimizer.skip_synchronize():
                    optimizer.step()
            else:
                optimizer.step()
            optimizer.zero_grad()
    if args.checkpoint and hvd.rank() == 0:
        whole = {"epoch": epoch + 1, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(whole, args.checkpoint)
model.eval()
with torch.no_grad():
    accuracy = (model(x).argmax(1) == y).float().mean().item()
accuracy = metric_average(accuracy, "avg_accuracy")
objects = hvd.allgather_object({"rank": hvd.rank()})
assert [one["rank"] for one in objects] == list(range(hvd.size()))
weights = torch.cat([p.detach().flatten() for p in model.parameters()])
everywhere = hvd.allgather(weights.unsqueeze(0), name="weights")
assert torch.equal(everywhere, everywhere[:1].expand_as(everywhere))
assert accuracy > (0.8 if resume_from_epoch or not args.checkpoint else 0.5), accuracy
hvd.join()
if hvd.rank() == 0:
    print(f"OK size {hvd.size()} {type(optimizer).__name__} from epoch {resume_from_epoch}")
