# SPDX-License-Identifier: Apache-2.0
"""Refuses to import without TensorFlow, or with one that is too old."""

OLDEST = (2, 12)

try:
    import tensorflow
except ModuleNotFoundError as error:
    if error.name != "tensorflow":
        raise  # TensorFlow is installed, but one of its own imports failed
    raise ImportError(
        "horo.tensorflow needs TensorFlow, 2.12 or newer: pip install tensorflow"
    ) from None


def number(version):
    """(2, 12) for "2.12.1"."""
    return tuple(int(part) for part in version.split("+")[0].split(".")[:2] if part.isdigit())


VERSION = number(tensorflow.__version__)

if VERSION < OLDEST:
    raise ImportError(
        f"horo.tensorflow needs TensorFlow 2.12 or newer; this is {tensorflow.__version__}"
    )
