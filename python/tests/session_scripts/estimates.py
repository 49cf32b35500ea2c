"""Trains, evaluates and predicts with an Estimator."""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)


def data():
    x = np.random.RandomState(0).randn(20, 3).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, x.sum(1, keepdims=True))).batch(4)


column = tf.feature_column.numeric_column("x", (3,))
estimator = tf.estimator.LinearRegressor([column], model_dir=sys.argv[1])
estimator.train(data)
print(sorted(estimator.evaluate(data)))
print(len(list(estimator.predict(data))))
