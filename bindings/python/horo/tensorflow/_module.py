# SPDX-License-Identifier: Apache-2.0
"""Loads horo-tensorflow.so, which defines Horo's ops in this process's TensorFlow. It lies beside
libhoro: in the folder `horo` of the folder that holds libhoro.so."""

from __future__ import annotations

import ctypes
import os

import tensorflow as tf

from horo import _native
from horo.errors import LibraryError

BLOCKING_THREADS = 64  # of TensorFlow's pool, where kernels block
MODULE = os.path.join("horo", "horo-tensorflow.so")


def _loaded_library():
    """The path of libhoro.so, also when the loader has searched for it."""
    if os.sep in _native.path:
        return _native.path
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.rstrip("\n").rpartition(" ")[2]
            if os.path.basename(path).startswith(_native.LIBRARY):
                return path
    return _native.path


def find():
    """The path of the module. Fails: LibraryError (it is not there)."""
    path = os.path.join(os.path.dirname(os.path.abspath(_loaded_library())), MODULE)
    if not os.path.exists(path):
        raise LibraryError(
            f"{path} not found: it comes with libhoro; install Horo completely, or set "
            "HORO_LIBRARY to the libhoro.so of a complete build"
        )
    return path


def _load():
    path = find()
    try:
        made = tf.load_op_library(path)
    except tf.errors.OpError as error:
        raise LibraryError(f"TensorFlow {tf.__version__} cannot load {path}: {error}") from None
    library = ctypes.CDLL(path)
    library.horo_tensorflow_problem.restype = ctypes.c_char_p
    problem = library.horo_tensorflow_problem().decode()
    if problem:
        raise LibraryError(f"TensorFlow {tf.__version__} cannot use {path}: {problem}")
    return made, bool(library.horo_tensorflow_asynchronous())


def _add_threads():
    """Gives TensorFlow threads for kernels that block. Functions with collectives that run at the same time
    block one each, in an order that may differ between the ranks; with no thread left, ranks wait for
    each other for ever."""
    threading = tf.config.threading
    if threading.get_inter_op_parallelism_threads():
        return  # the program has chosen
    try:
        threading.set_inter_op_parallelism_threads(max(BLOCKING_THREADS, os.cpu_count() or 1))
    except RuntimeError:  # TensorFlow has started its threads
        pass


# `ops` has a function for each op. ASYNCHRONOUS: kernels do not block TensorFlow's threads.
ops, ASYNCHRONOUS = _load()
if not ASYNCHRONOUS:
    _add_threads()
