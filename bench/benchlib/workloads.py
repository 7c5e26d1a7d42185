# SPDX-License-Identifier: Apache-2.0
"""The measured cases: named lists of float32 tensors that one step sums."""

import typing

DEFAULT_SIZES = (4, 1 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20, 256 << 20)
CASES = ("sizes", "resnet50", "tiny")


class Workload(typing.NamedTuple):
    name: str
    counts: tuple  # elements per tensor, in order of submission

    @property
    def bytes(self):
        return 4 * sum(self.counts)

    def fused(self):
        """The same number of bytes as one tensor."""
        return Workload(self.name, (sum(self.counts),))


def resnet50():
    """ResNet-50's gradients (ImageNet, 1,000 classes) in backward order: 53 convolutions without bias, each
    followed by a batch norm (weight, bias), and one linear layer (weight, bias); 161 tensors, 25,557,032 floats."""
    forward = []

    def convolution(inputs, outputs, kernel):
        forward.extend([inputs * outputs * kernel * kernel, outputs, outputs])

    convolution(3, 64, 7)
    inputs = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            convolution(inputs, width, 1)
            convolution(width, width, 3)
            convolution(width, 4 * width, 1)
            if block == 0:  # the shortcut changes its width in the first block
                convolution(inputs, 4 * width, 1)
            inputs = 4 * width
    forward.extend([1000 * inputs, 1000])
    return Workload("resnet50", tuple(reversed(forward)))


def workloads(cases, sizes):
    """The workloads of the given cases, in the order of CASES."""
    made = []
    if "sizes" in cases:
        made.extend(Workload("sizes", (max(1, size // 4),)) for size in sizes)
    if "resnet50" in cases:
        made.append(resnet50())
    if "tiny" in cases:
        made.append(Workload("tiny", (256,) * 1000))
    return made


def write(path, made):
    """Writes the file that the measured programs read: a line per case with its name and its element counts."""
    with open(path, "w", encoding="ascii") as file:
        for workload in made:
            print(workload.name, *workload.counts, file=file)


def read(path):
    with open(path, encoding="ascii") as file:
        return [Workload(words[0], tuple(map(int, words[1:]))) for words in map(str.split, file)]


def buckets(counts, first_bytes=1 << 20, later_bytes=25 << 20):
    """Index ranges as torch's DistributedDataParallel groups gradients: a small first bucket, then buckets of
    25 MiB; a tensor is never split."""
    ranges, begin, size = [], 0, 0
    limit = first_bytes
    for index, count in enumerate(counts):
        size += 4 * count
        if size >= limit:
            ranges.append(range(begin, index + 1))
            begin, size, limit = index + 1, 0, later_bytes
    if begin < len(counts):
        ranges.append(range(begin, len(counts)))
    return ranges
