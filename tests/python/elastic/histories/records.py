# SPDX-License-Identifier: Apache-2.0
"""What the workers of jobs/train.py have written, and what must be true of it, whoever was lost."""

import collections
import json
import math
import os

SAMPLES = 60
FEATURES = 4
HIDDEN = 16
RATE = 0.005


class Wrong(Exception):
    """The workers' records contradict the promise."""


def require(true, *what):
    if not true:
        raise Wrong(" ".join(str(one) for one in what))


def read_lines(path):
    """A worker that is killed may have written half a line."""
    with open(path) as file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)


class Records:
    def __init__(self, folder):
        names = sorted(name for name in os.listdir(folder) if name.endswith(".jsonl"))
        self.lines = [line for name in names for line in read_lines(os.path.join(folder, name))]

    def of(self, what):
        return (line for line in self.lines if line["what"] == what)

    def ranks(self):
        """The workers of each generation by rank."""
        found = collections.defaultdict(dict)
        for line in self.of("enters"):
            found[line["generation"]][line["rank"]] = line["worker"]
        return found

    def most_ranks(self):
        return max((line["size"] for line in self.lines), default=0)

    def last_step(self):
        return max((line["step"] for line in self.of("did")), default=0)

    def standstills(self):
        """Seconds from the last step of each generation to the first one of the next."""
        first, last = {}, {}
        for line in self.of("did"):
            generation, seconds = line["generation"], line["seconds"]
            first[generation] = min(first.get(generation, seconds), seconds)
            last[generation] = max(last.get(generation, seconds), seconds)
        return [first[later] - last[before] for before, later in zip(sorted(first), sorted(first)[1:])]

    def require_equal_parameters(self):
        """After each step, and whenever the training begins again."""
        for what in ("did", "enters", "ends"):
            found = collections.defaultdict(dict)
            for line in self.of(what):
                found[line["generation"], line.get("step")].setdefault(line["digest"], []).append(line["worker"])
            for place, digests in found.items():
                require(len(digests) == 1, f"parameters differ ({what}, generation and step {place}):", digests)

    def require_order_of_ranks(self):
        """Workers that stay keep their order and have the lowest ranks."""
        before = {}
        for generation, workers in sorted(self.ranks().items()):
            numbers = [worker for _, worker in sorted(workers.items())]
            stayed = [number for number in numbers if number in before]
            require(numbers[: len(stayed)] == stayed, f"generation {generation}: newcomers before others:", numbers)
            require(stayed == sorted(stayed, key=before.get), f"generation {generation}: another order:", numbers)
            before = {number: rank for rank, number in enumerate(numbers)}

    def steps(self):
        """The generation in which each step ended for those that are there in the end."""
        ended = collections.defaultdict(lambda: collections.defaultdict(set))
        last = collections.Counter()
        for line in self.lines:
            last[line["worker"]] = max(last[line["worker"]], line["generation"])
        for line in self.of("did"):
            ended[line["step"]][line["generation"]].add(line["worker"])
        require(sorted(ended) == list(range(1, len(ended) + 1)), "a step is missing:", sorted(ended))
        for step, by_generation in ended.items():
            for generation, workers in by_generation.items():
                again = [later for later in by_generation if later > generation]
                there = [worker for worker in workers if again and last[worker] >= min(again)]
                require(not there, f"step {step} of generation {generation} ended again in {again}, but there were", there)
        return {step: max(by_generation) for step, by_generation in ended.items()}

    def batches(self):
        """The samples that each rank used in each step that counts."""
        steps = self.steps()
        found = collections.defaultdict(dict)
        for line in self.of("tries"):
            if steps.get(line["step"]) == line["generation"]:
                found[line["step"]][line["rank"]] = line
        for step, ranks in found.items():
            size = next(iter(ranks.values()))["size"]
            require(len(ranks) == size, f"step {step} ended with {len(ranks)} of {size} ranks")
        return found

    def losses(self):
        """By step and rank. A rank that was lost in the step may have written none."""
        steps = self.steps()
        counts = (line for line in self.of("did") if steps[line["step"]] == line["generation"])
        return {(line["step"], line["rank"]): line["loss"] for line in counts}

    def require_every_sample_once(self, finished):
        """Only at the end of an epoch some are visited twice, fewer than there are ranks."""
        used = collections.defaultdict(collections.Counter)
        for ranks in self.batches().values():
            for line in ranks.values():
                used[line["epoch"]].update(line["samples"])
        for epoch, counts in used.items():
            if epoch == max(used) and not finished:
                continue
            missing = sorted(set(range(SAMPLES)) - set(counts))
            require(not missing, f"epoch {epoch} left out samples", missing)
            twice = sum(counts.values()) - SAMPLES
            require(twice < self.most_ranks(), f"epoch {epoch} visited {twice} samples twice")

    def require_the_same_training(self):
        """One process that takes the same steps has the same losses, and gets the same parameters."""
        ends = list(self.of("ends"))
        losses = self.losses()
        first = min(line["generation"] for line in self.of("enters"))
        # Rank 0 of the first generation, whose parameters all others took, may be lost before it writes a line.
        workers = sorted(set(range(min(self.ranks()[first].values()) + 1)) | set(self.ranks()[first].values()))
        batches = [ranks for _, ranks in sorted(self.batches().items())]
        alone = [train_alone(worker, batches) for worker in workers]
        same = [curve for parameters, curve in alone if close(parameters, ends[0]["parameters"])]
        require(same, "one process comes to other parameters")
        require(any(same_losses(losses, curve) for curve in same), "one process has another loss curve")

    def require_all(self, finished):
        self.require_equal_parameters()
        self.require_order_of_ranks()
        self.require_every_sample_once(finished)
        if finished:
            require(list(self.of("ends")), "no worker has ended the training")
            self.require_the_same_training()


def close(left, right):
    return len(left) == len(right) and all(math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6) for a, b in zip(left, right))


def same_losses(found, alone):
    return all(math.isclose(loss, alone[place], rel_tol=1e-6, abs_tol=1e-9) for place, loss in found.items())


def train_alone(worker, batches):
    """The parameters that the training of this worker has after these batches, in one process, and its losses by
    step and rank."""
    import torch

    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    torch.manual_seed(worker)
    layers = torch.nn.Linear(FEATURES, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 1)
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
    points = torch.randn(SAMPLES, FEATURES, generator=torch.Generator().manual_seed(1))
    losses = {}
    for ranks in batches:
        optimizer.zero_grad()
        for line in ranks.values():
            chosen = points[line["samples"]]
            loss = (model(chosen) - chosen.sum(1, keepdim=True)).square().mean()
            (loss / len(ranks)).backward()
            losses[line["step"], line["rank"]] = loss.item()
        optimizer.step()
    return torch.cat([one.detach().flatten() for one in model.parameters()]).tolist(), losses
