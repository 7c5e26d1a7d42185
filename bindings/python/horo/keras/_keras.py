# SPDX-License-Identifier: Apache-2.0
"""Refuses to import without Keras."""

try:
    import keras
except ModuleNotFoundError as error:
    if error.name == "keras":
        raise ImportError("horo.keras needs Keras: pip install keras") from None
    if error.name in ("tensorflow", "jax", "torch"):
        raise ImportError(
            f"Keras is set to use {error.name}, which is not installed: set KERAS_BACKEND to "
            "tensorflow, jax or torch"
        ) from None
    raise  # Keras is installed, but one of its own imports failed

VERSION = tuple(int(part) for part in keras.__version__.split(".")[:2] if part.isdigit())
