"""A regression in half precision with a dynamic loss scale, recorded for the picture of its rule.

The scale is halved when a gradient is not finite, and such a step changes no weight; it is doubled
after some steps that went well. In the sick training one input becomes too large for half precision,
so no scale is small enough.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import smdebug

STEPS = 200
ONSET = 120
GROWTH_INTERVAL = 30
FIRST_SCALE = 2.0**10
LEARNING_RATE = 0.05
HUGE = 60000.0


def record(out_dir: Path, *, is_sick: bool) -> None:
    """Trains, and saves the loss and the scale of each step."""
    rng = np.random.default_rng(1)
    truth = rng.normal(size=8)
    weights = np.zeros(8, np.float32)
    scale, good_steps = FIRST_SCALE, 0
    options = {
        "save_config": smdebug.SaveConfig(save_interval=1),
        "include_collections": ["losses"],
    }
    with smdebug.Hook(out_dir, **options) as hook, warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # overflows are what this is about
        hook.set_mode(smdebug.modes.TRAIN)
        for step in range(STEPS):
            hook.begin_step()
            x = rng.normal(size=(32, 8))
            y = (x @ truth).astype(np.float16)
            if is_sick and step >= ONSET:
                x[0, 0] = HUGE
            inputs = x.astype(np.float16)
            error = inputs @ weights.astype(np.float16) - y
            gradient = inputs.T @ (error * np.float16(scale / len(x)))
            hook.save_scalar("loss_scale", scale)
            hook.save_scalar("loss", float(np.mean(np.square(error.astype(np.float32)))))
            if np.isfinite(gradient).all():
                weights -= LEARNING_RATE * gradient.astype(np.float32) / scale
                good_steps += 1
            else:
                scale, good_steps = scale / 2, 0
            if good_steps == GROWTH_INTERVAL:
                scale, good_steps = scale * 2, 0
