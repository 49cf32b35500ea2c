"""Boosts trees with and without a hook and answers questions about the time it takes.

Runs in one of two environments, with our package or with the original's, whose interfaces agree:
bench/boosting.py DIRECTORY. Each line of standard input is a question in JSON, each line of
standard output the answer. XGBoost uses one thread, so that the time of the training thread is all
of it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
from pathlib import Path

import numpy as np
import xgboost
from desk import serve

with contextlib.redirect_stdout(sys.stderr):
    from smdebug.xgboost import Hook, SaveConfig

PARAMS = {
    "objective": "binary:logistic",
    "max_depth": 4,
    "eta": 0.3,
    "nthread": 1,
    "tree_method": "hist",
    "eval_metric": ["logloss", "auc"],
}
ROUNDS = 100
INCLUDED = {
    "importance": ["metrics", "feature_importance"],
    "metrics": ["metrics"],
    "shap": ["metrics", "average_shap", "full_shap"],
}


class Desk:
    """Answers questions."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.runs = 0
        random = np.random.RandomState(0)
        x = random.rand(500, 30)
        y = (x[:, 0] + x[:, 1] * x[:, 2] > 0.8).astype(np.float32)
        names = [f"feature_{i}" for i in range(30)]
        self.train = xgboost.DMatrix(x, y, feature_names=names)
        self.valid = xgboost.DMatrix(x[:200], y[:200], feature_names=names)

    def boost(self, hook: str, interval: int) -> list[float]:
        """[wall, processor] seconds of a training; the hook is closed within them."""
        self.runs += 1
        callbacks = []
        wall, processor = time.perf_counter(), time.thread_time()
        if hook:
            made = Hook(
                out_dir=str(self.base / f"{hook}-{self.runs}"),
                include_collections=INCLUDED[hook],
                save_config=SaveConfig(save_interval=interval),
                train_data=self.valid,
                validation_data=self.valid,
            )
            callbacks.append(made)
        xgboost.train(
            PARAMS,
            self.train,
            ROUNDS,
            evals=[(self.train, "train"), (self.valid, "validation")],
            callbacks=callbacks,
            verbose_eval=False,
        )
        for callback in callbacks:
            callback.close()
        return [time.perf_counter() - wall, time.thread_time() - processor]

    def pair(self, hook: str, interval: int) -> list[list[float]]:
        """The same without and with the hook."""
        return [self.boost("", 0), self.boost(hook, interval)]

    def size(self, hook: str, interval: int) -> int:
        """Bytes that a training leaves on the disk."""
        before = self.stored()
        self.boost(hook, interval)
        return self.stored() - before

    def stored(self) -> int:
        """Bytes of all runs."""
        return sum(
            os.path.getsize(os.path.join(folder, file))
            for folder, _, files in os.walk(self.base)
            for file in files
        )


def main() -> None:
    logging.disable(logging.WARNING)
    desk = Desk(Path(sys.argv[1]))
    desk.boost("", 0)
    desk.boost("importance", 10)
    serve(desk)


if __name__ == "__main__":
    main()
