"""Keras 2 as a package of its own: the same as Keras 3."""

from __future__ import annotations

import tf_keras

from smdebug.tensorflow.keras import automatic


def patch() -> automatic.Discovery:
    """Records models from now on."""
    return automatic.patch(tf_keras)
