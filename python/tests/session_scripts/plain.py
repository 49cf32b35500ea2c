"""Trains in a monitored session, and prints what it learnt."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
tf.set_random_seed(3)
random = np.random.RandomState(0)
inputs = tf.placeholder(tf.float32, (None, 3), name="inputs")
with tf.variable_scope("dense"):
    kernel = tf.get_variable("kernel", (3, 2))
    bias = tf.get_variable("bias", (2,))
output = tf.nn.relu(tf.matmul(inputs, kernel) + bias, name="output")
loss = tf.losses.mean_squared_error(tf.ones_like(output), output)
step = tf.train.get_or_create_global_step()
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
with tf.train.MonitoredTrainingSession() as session:
    for _ in range(12):
        session.run(train, {inputs: random.randn(4, 3)})
    value = session.run_step_fn(lambda step_context: step_context.session.run(kernel))
print(value.tobytes().hex())
