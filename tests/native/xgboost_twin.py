"""Trains what examples/cpp/xgboost_c_api.cpp trains, in Python, and compares the two runs.

Usage: xgboost_twin.py RUN_OF_THE_EXAMPLE DIRECTORY

Names, collections, steps, element types and shapes must be equal, and values close.
"""

import sys
from pathlib import Path

import numpy as np
import xgboost
from smdebug.trials import create_trial
from smdebug.xgboost import Hook, SaveConfig

PARAMETERS = {"objective": "binary:logistic", "max_depth": "2", "eta": "0.3", "nthread": "1"}


def train(run):
    numbers = np.arange(1, 161, dtype=np.float32)
    x = np.fmod(np.float32(0.618034) * numbers, np.float32(1)).reshape(40, 4)
    y = (x[:, 0] > 0.5).astype(np.float32)
    data = xgboost.DMatrix(x, y)
    validation = xgboost.DMatrix(x[:10], y[:10])
    hook = Hook(
        str(run),
        save_all=True,
        save_config=SaveConfig(save_interval=2),
        hyperparameters=PARAMETERS,
        train_data=data,
        validation_data=validation,
    )
    evals = [(data, "train"), (validation, "validation")]
    xgboost.train(PARAMETERS, data, 4, evals=evals, callbacks=[hook], verbose_eval=False)
    hook.close()


def compare(example, twin):
    assert example.steps() == twin.steps() == [0, 2]
    assert sorted(example.tensor_names()) == sorted(twin.tensor_names())
    assert len(example.tensor_names()) > 30
    for collection in twin.collections():
        names = [sorted(run.tensor_names(collection=collection)) for run in (example, twin)]
        assert names[0] == names[1], (collection, names)
    for name in twin.tensor_names():
        for step in (0, 2):
            left, right = (run.tensor(name).value(step) for run in (example, twin))
            assert left.dtype.kind == right.dtype.kind, (name, left.dtype, right.dtype)
            assert left.shape == right.shape, name
            if left.dtype.kind in "USO":
                assert list(left) == list(right), (name, left, right)
            else:
                assert left.dtype == right.dtype, (name, left.dtype, right.dtype)
                np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-6, err_msg=name)


if __name__ == "__main__":
    folder = Path(sys.argv[2])
    train(folder)
    compare(create_trial(sys.argv[1]), create_trial(str(folder)))
    print("The two runs are alike.")
