"""Keras: its models are recorded when they fit, evaluate and predict, and loops with tapes."""

from __future__ import annotations

import keras

from smdebug.tensorflow.keras import automatic


def patch() -> automatic.Discovery:
    """Records models from now on."""
    return automatic.patch(keras)
