# SPDX-License-Identifier: Apache-2.0
"""Trains a small transformer to continue a text letter by letter, data-parallel, with PyTorch:

    PYTHONPATH=build/release/python build/release/bin/horo run -np 2 python3 examples/torch_text.py

It learns from data/sonnets.txt, or from a text file that you give, and writes a few lines of its
own. It shows what a longer training needs besides examples/torch_digits.py: gradients that add up
over several backwards, clipping, a learning rate that warms up, and a checkpoint from which all
ranks continue. The result does not depend on the number of ranks, up to rounding.
"""

import argparse
import os
import time

import torch
import torch.nn.functional as F
from torch import nn

import horo.torch as horo

TEXT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "sonnets.txt")
CONTEXT = 64  # letters that the model sees at once
BATCH = 32  # pieces of text in a step, over all ranks together
PASSES = 2  # backwards per step
WIDTH, HEADS, LAYERS = 64, 4, 2
LEARNING_RATE = 3e-3
WARM_UP = 20  # steps


class Layer(nn.Module):
    """Attention to the earlier letters, then a small network for each letter alone."""

    def __init__(self):
        super().__init__()
        self.before = nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.between = nn.LayerNorm(WIDTH)
        self.alone = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x, later):
        y = self.before(x)
        x = x + self.attention(y, y, y, attn_mask=later, need_weights=False)[0]
        return x + self.alone(self.between(x))


class Transformer(nn.Module):
    def __init__(self, letters):
        super().__init__()
        self.letter = nn.Embedding(letters, WIDTH)
        self.place = nn.Embedding(CONTEXT, WIDTH)
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])
        self.last = nn.LayerNorm(WIDTH)
        self.scores = nn.Linear(WIDTH, letters)

    def forward(self, text):
        length = text.shape[1]
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        x = self.letter(text) + self.place(torch.arange(length))
        for layer in self.layers:
            x = layer(x, later)
        return self.scores(self.last(x))


def pieces(text, generator):
    """A step's pieces of the text, and the letter after each letter. All ranks draw the same."""
    starts = torch.randint(len(text) - CONTEXT - 1, (BATCH,), generator=generator)
    both = torch.stack([text[start : start + CONTEXT + 1] for start in starts])
    return both[:, :-1], both[:, 1:]


def train(model, optimizer, schedule, text, steps, generator):
    """The mean of the ranks' losses in each step."""
    share = BATCH // (PASSES * horo.size())
    losses = []
    for step in range(steps):
        seen, follows = pieces(text, generator)
        optimizer.zero_grad()
        total = torch.zeros(1)
        for number in range(PASSES):  # gradients add up and are reduced after the last pass
            first = (number * horo.size() + horo.rank()) * share
            mine = slice(first, first + share)
            guess = model(seen[mine]).flatten(0, 1)
            loss = F.cross_entropy(guess, follows[mine].flatten()) / PASSES
            loss.backward()
            total += loss.detach()
        optimizer.synchronize()  # gradients are averages now, so that all ranks clip alike
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        with optimizer.skip_synchronize():
            optimizer.step()
        schedule.step()
        losses.append(horo.allreduce(total, name="loss").item())
        if horo.rank() == 0 and step % 50 == 0:
            print(f"step {step}: loss {losses[-1]:.3f}", flush=True)
    return losses


def write(model, alphabet, start, length):
    """`start`, continued by `length` letters."""
    text = torch.tensor([[alphabet.index(letter) for letter in start]])
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for _ in range(length):
            chances = F.softmax(model(text[:, -CONTEXT:])[0, -1] / 0.8, 0)
            text = torch.cat([text, torch.multinomial(chances, 1, generator=generator)[None]], 1)
    return "".join(alphabet[index] for index in text[0].tolist())


def options():
    parser = argparse.ArgumentParser(description="A small transformer that learns from a text.")
    parser.add_argument("text", nargs="?", default=TEXT, help="a text file (sonnets.txt)")
    parser.add_argument("--steps", type=int, default=300, help="%(default)s")
    parser.add_argument("--checkpoint", help="file to continue from, and to save to at the end")
    return parser.parse_args()


def prepare(model, checkpoint):
    """The optimizer. Model and optimizer continue from the checkpoint, if there is one."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    if checkpoint and horo.rank() == 0 and os.path.exists(checkpoint):
        saved = torch.load(checkpoint)  # rank 0 reads; the broadcasts below give it to all
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    horo.broadcast_parameters(model.state_dict(), root_rank=0)
    horo.broadcast_optimizer_state(optimizer, root_rank=0)
    return horo.DistributedOptimizer(
        optimizer, model.named_parameters(), backward_passes_per_step=PASSES
    )


def main():
    args = options()
    horo.init()
    torch.set_num_threads(1)  # one core per rank
    torch.manual_seed(1609)
    if BATCH % (PASSES * horo.size()):
        raise SystemExit(f"{horo.size()} ranks cannot divide {BATCH // PASSES} pieces evenly")
    with open(args.text, encoding="utf-8") as file:
        content = file.read()
    alphabet = sorted(set(content))
    text = torch.tensor([alphabet.index(letter) for letter in content])

    model = Transformer(len(alphabet))
    optimizer = prepare(model, args.checkpoint)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / WARM_UP)
    )

    begin = time.perf_counter()
    generator = torch.Generator().manual_seed(1609)
    losses = train(model, optimizer, schedule, text, args.steps, generator)
    seconds = time.perf_counter() - begin

    if horo.rank() == 0:
        last = losses[-10:]
        rate = args.steps * BATCH * CONTEXT / seconds
        print(write(model, alphabet, "Shall I ", 120))
        print(
            f"{horo.size()} rank(s): loss {losses[0]:.3f} to {sum(last) / len(last):.3f}, "
            f"{rate:.0f} letters/s"
        )
        if args.checkpoint:
            torch.save(
                {"model": model.state_dict(), "optimizer": optimizer.state_dict()}, args.checkpoint
            )


if __name__ == "__main__":
    main()
