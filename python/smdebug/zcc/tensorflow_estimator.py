"""Estimators: their sessions are found as others are; here they say which mode they are in."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from smdebug import _core
from smdebug.zcc import Patches, patched


def patch() -> Patches:
    """Training, evaluation and prediction set the mode from now on."""
    kind = tf.estimator.Estimator
    with Patches() as patches:
        patches.replace(kind, "train", _in_mode(_core.ModeKeys.TRAIN, kind.train))
        patches.replace(kind, "evaluate", _in_mode(_core.ModeKeys.EVAL, kind.evaluate))
        patches.replace(kind, "predict", _predicting(kind.predict))
    return patches


def _sessions() -> Any:
    return patched("tensorflow").parts["tensorflow_session"]


def _in_mode(mode: _core.ModeKeys, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _sessions().mode(mode):
            return original(*args, **kwargs)

    return call


def _predicting(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def predict(*args: Any, **kwargs: Any) -> Iterator[Any]:
        # The session runs while the predictions are taken.
        with _sessions().mode(_core.ModeKeys.PREDICT):
            yield from original(*args, **kwargs)

    return predict
