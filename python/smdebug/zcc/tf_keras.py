"""Keras 2 as a package of its own: the same as Keras 3."""

from __future__ import annotations

import tf_keras

from smdebug.tensorflow import keras_automatic


def patch() -> keras_automatic.Discovery:
    """Records models from now on."""
    return keras_automatic.patch(tf_keras)
