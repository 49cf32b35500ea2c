"""Small data and trainings for the tests of the hook for XGBoost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xgboost
from smdebug.xgboost import Hook, SaveConfig, create_trial

PARAMS = {"objective": "binary:logistic", "max_depth": 2, "eta": 0.3, "nthread": 1}
EVERY_ROUND = SaveConfig(save_interval=1)
TREE_COLUMNS = [
    *("Tree", "Node", "ID", "Feature", "Split", "Yes", "No", "Missing", "Gain", "Cover"),
    "Category",
]
KINDS = ("weight", "gain", "cover", "total_gain", "total_cover")


class Data:
    """40 rows; the label depends on the first column. The first 10 rows validate."""

    def __init__(self, classes: int = 2, names: list[str] | None = None) -> None:
        x = np.random.RandomState(0).rand(40, 4)
        y = np.floor(x[:, 0] * classes).astype(np.float32) if classes > 2 else x[:, 0] > 0.5
        self.x, self.y, self.names = x, np.asarray(y, np.float32), names
        self.train = xgboost.DMatrix(self.x, self.y, feature_names=names)
        self.valid = xgboost.DMatrix(self.x[:10], self.y[:10], feature_names=names)
        self.evals = [(self.train, "train"), (self.valid, "validation")]

    def hook(self, out_dir: Path, **arguments: Any) -> Hook:
        """A hook that knows the data."""
        given = {"train_data": self.train, "validation_data": self.valid, **arguments}
        return Hook(str(out_dir), **given)

    def fit(
        self, hook: Hook | None, rounds: int = 4, params: dict[str, Any] | None = None, **more: Any
    ) -> Any:
        """A model, trained with or without a hook."""
        callbacks = [*more.pop("callbacks", []), *([hook] if hook is not None else [])]
        more.setdefault("evals", self.evals)
        more.setdefault("verbose_eval", False)
        return xgboost.train(
            {**PARAMS, **(params or {})}, self.train, rounds, callbacks=callbacks, **more
        )


def closed(hook: Hook) -> Any:
    """The run of a hook that is closed now."""
    hook.close()
    out_dir = Path(hook.out_dir)
    assert (out_dir / "training_job_end.ts").exists()
    return create_trial(str(out_dir))


def record(
    data: Data, out_dir: Path, rounds: int = 4, params: Any = None, **arguments: Any
) -> tuple[Any, Any]:
    """The run and the model, which is, bit for bit, that of a training without a hook."""
    fit = {name: arguments.pop(name) for name in ("custom_metric", "feval") if name in arguments}
    hook = data.hook(out_dir, **arguments)
    model = data.fit(hook, rounds, params, **fit)
    plain = data.fit(None, rounds, params, **fit)
    assert bytes(model.save_raw("json")) == bytes(plain.save_raw("json"))
    return closed(hook), model


def value(trial: Any, name: str, step: int) -> Any:
    """A recorded value."""
    return trial.tensor(name).value(step)
