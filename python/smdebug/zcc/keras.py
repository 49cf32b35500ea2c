"""Keras: its models are recorded when they fit, evaluate and predict, and loops with tapes."""

from __future__ import annotations

import keras

from smdebug.tensorflow import keras_automatic


def patch() -> keras_automatic.Discovery:
    """Records models from now on."""
    return keras_automatic.patch(keras)
