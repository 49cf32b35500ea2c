"""Trains in the way that its first argument names, and prints what the model has learnt."""

import hashlib
import sys

import numpy as np

way, rounds = sys.argv[1], int(sys.argv[2])
x = np.random.RandomState(0).rand(40, 4)
y = (x[:, 0] > 0.5).astype(np.float32)
params = {"objective": "binary:logistic", "max_depth": 2, "eta": 0.3, "nthread": 1}


def show(text: str) -> None:
    print(hashlib.sha256(text.encode()).hexdigest())


if way.startswith("lightgbm"):
    import lightgbm

    settings = {"objective": "binary", "min_data_in_leaf": 5, "num_threads": 1, "verbose": -1}
    data = lightgbm.Dataset(x, y)
    valid = lightgbm.Dataset(x[:10], y[:10], reference=data)
    if way == "lightgbm_sklearn":
        model = lightgbm.LGBMClassifier(n_estimators=rounds, n_jobs=1, verbose=-1)
        show(model.fit(x, y, eval_set=[(x[:10], y[:10])]).booster_.model_to_string())
    elif way == "lightgbm_cv":
        show(repr(lightgbm.cv(settings, data, rounds, nfold=2)))
    else:
        show(lightgbm.train(settings, data, rounds, valid_sets=[valid]).model_to_string())
    sys.exit()

import xgboost  # noqa: E402

train = xgboost.DMatrix(x, y)
valid = xgboost.DMatrix(x[:10], y[:10])
evals = [(train, "train"), (valid, "validation")]
if way == "train":
    model = xgboost.train(params, train, rounds, evals=evals)
elif way == "imported":
    from xgboost.training import train as fit

    model = fit(params, train, rounds, evals=evals, verbose_eval=False)
elif way == "stopped":
    model = xgboost.train(params, train, rounds, evals=evals, early_stopping_rounds=1)
elif way == "classifier":
    fitted = xgboost.XGBClassifier(n_estimators=rounds, max_depth=2, n_jobs=1)
    model = fitted.fit(x, y, eval_set=[(x[:10], y[:10])]).get_booster()
elif way == "forest":
    fitted = xgboost.XGBRFClassifier(n_estimators=rounds, max_depth=2, n_jobs=1, random_state=1)
    model = fitted.fit(x, y, eval_set=[(x[:10], y[:10])], verbose=False).get_booster()
elif way == "cv":
    show(repr(xgboost.cv(params, train, rounds, nfold=2, seed=1, as_pandas=False)))
    sys.exit()
elif way == "own":
    from smdebug.xgboost import Hook

    with Hook(sys.argv[3]) as hook:
        model = xgboost.train(params, train, rounds, evals=evals, callbacks=[hook])
show(model.save_raw("json").decode())
