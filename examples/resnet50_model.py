# SPDX-License-Identifier: Apache-2.0
"""ResNet-50 as a module of PyTorch, for torch_resnet50.py and the benchmarks."""

import torch.nn.functional as F
from torch import nn

CLASSES = 1000


def convolution(inputs, outputs, kernel, stride=1):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False),
        nn.BatchNorm2d(outputs),
    )


class Block(nn.Module):
    """Three convolutions with few channels in the middle, added to the input."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.narrow = convolution(inputs, width, 1)
        self.middle = convolution(width, width, 3, stride)
        self.widen = convolution(width, outputs, 1)
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else convolution(inputs, outputs, 1, stride)

    def forward(self, x):
        y = F.relu(self.narrow(x))
        y = F.relu(self.middle(y))
        return F.relu(self.widen(y) + self.shortcut(x))


class ResNet50(nn.Module):
    """161 parameters, 25,557,032 numbers; images of any size from 32 x 32 up."""

    def __init__(self):
        super().__init__()
        self.first = convolution(3, 64, 7, 2)
        blocks, inputs = [], 64
        for width, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
            for index in range(count):
                stride = 2 if index == 0 and width > 64 else 1
                blocks.append(Block(inputs, width, stride))
                inputs = 4 * width
        self.blocks = nn.Sequential(*blocks)
        self.scores = nn.Linear(inputs, CLASSES)

    def forward(self, images):
        x = F.max_pool2d(F.relu(self.first(images)), 3, 2, 1)
        return self.scores(self.blocks(x).mean((2, 3)))
