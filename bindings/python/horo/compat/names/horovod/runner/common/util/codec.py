# SPDX-License-Identifier: Apache-2.0
"""Objects as text."""

import base64
import pickle

try:
    import cloudpickle as _writer
except ImportError:  # functions must then belong to a module that the reader has, too
    _writer = pickle


def dumps_base64(obj, to_ascii=True):
    """The pickled object in base64, as str, or as bytes without `to_ascii`."""
    text = base64.b64encode(_writer.dumps(obj))
    return text.decode("ascii") if to_ascii else text


def loads_base64(encoded):
    """The object of dumps_base64(). It must come from a program that you trust."""
    return pickle.loads(base64.b64decode(encoded))
