# SPDX-License-Identifier: Apache-2.0
"""Digests of tensors, by which ranks find out whether their states are equal."""

from __future__ import annotations

import ctypes
import hashlib
from typing import TYPE_CHECKING

from horo._elastic.standing import DIGEST
from horo._failures import check
from horo._native import slow

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


def digest_of_one(tensor: Any) -> bytes:
    """A digest of the values of a tensor."""
    flat = tensor.detach().cpu().contiguous()
    made = ctypes.create_string_buffer(DIGEST)
    check(slow.horo_digest(flat.data_ptr(), flat.numel() * flat.element_size(), made))
    return made.raw


def digest_of(tensors: list[Any]) -> bytes:
    """A digest of the values of tensors, for a comparison between ranks."""
    return digest_of_digests(map(digest_of_one, tensors))


def digest_of_digests(digests: Iterable[bytes]) -> bytes:
    """A digest of several digests, in their order."""
    return hashlib.sha1(b"".join(digests), usedforsecurity=False).digest()[:DIGEST]
