"""Small graphs that are trained in monitored sessions, the same way each time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
ONE_THREAD = tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)


@dataclass
class Net:
    """A graph and what a script needs of it."""

    graph: Any
    inputs: Any
    labels: Any
    loss: Any
    train: Any
    optimizer: Any


def one_weight(hook: Any = None, *, resource: bool = True) -> Net:
    """`foobar/weight1` times the inputs, trained by Adam; a placeholder stands aside, unfed."""
    graph = tf.Graph()
    with graph.as_default():
        tf1.set_random_seed(7)
        inputs = tf1.placeholder(tf.float32, (None, 4), name="inputs")
        labels = tf1.placeholder(tf.float32, (None, 3), name="labels")
        with tf1.variable_scope("foobar"):
            weight = tf1.get_variable("weight1", (4, 3), use_resource=resource)
        product = tf.matmul(inputs, weight, name="product")
        loss = tf.reduce_mean(tf.square(product - labels), name="loss")
        unfed = tf1.placeholder(tf.float32, (), name="unfed")
        tf.add(loss, unfed, name="loss_and_unfed")
        optimizer = tf1.train.AdamOptimizer(0.1)
        if hook is not None:
            optimizer = hook.wrap_optimizer(optimizer)
            hook.add_to_collection("losses", loss)
        train = optimizer.minimize(loss, global_step=tf1.train.get_or_create_global_step())
    return Net(graph, inputs, labels, loss, train, optimizer)


def layered(hook: Any = None, optimizer: Any = None) -> Net:
    """Convolution, batch norm, dropout and two dense layers: what graphs are rewritten for."""
    graph = tf.Graph()
    with graph.as_default():
        tf1.set_random_seed(7)
        inputs = tf1.placeholder(tf.float32, (None, 8, 8, 3), name="inputs")
        labels = tf1.placeholder(tf.float32, (None, 2), name="labels")
        kernel = tf1.get_variable("conv/kernel", (3, 3, 3, 4))
        flow = tf.nn.conv2d(inputs, kernel, 1, "SAME")
        flow = tf.nn.bias_add(flow, tf1.get_variable("conv/bias", (4,)))
        scale, offset = tf1.get_variable("bn/gamma", (4,)), tf1.get_variable("bn/beta", (4,))
        flow = tf.nn.relu(tf1.nn.fused_batch_norm(flow, scale, offset)[0])
        flow = tf.nn.dropout(tf.reshape(flow, (-1, 256)), rate=0.3)
        for i, (wide, narrow) in enumerate([(256, 16), (16, 2)]):
            with tf1.variable_scope(f"dense{i}"):
                dense = tf.matmul(flow, tf1.get_variable("kernel", (wide, narrow)))
                flow = tf.nn.bias_add(dense, tf1.get_variable("bias", (narrow,)))
                flow = tf.nn.relu(flow) if i == 0 else flow
        loss = tf1.losses.mean_squared_error(labels, flow)
        optimizer = optimizer or tf1.train.MomentumOptimizer(0.01, 0.9)
        if hook is not None:
            optimizer = hook.wrap_optimizer(optimizer)
        train = optimizer.minimize(loss, global_step=tf1.train.get_or_create_global_step())
    return Net(graph, inputs, labels, loss, train, optimizer)


def batches(net: Net, count: int) -> Iterable[dict[Any, Any]]:
    """The same data in each test."""
    random = np.random.RandomState(0)
    shapes = [[5, *tensor.shape.as_list()[1:]] for tensor in (net.inputs, net.labels)]
    for _ in range(count):
        yield {
            tensor: random.randn(*shape).astype(np.float32)
            for tensor, shape in zip((net.inputs, net.labels), shapes, strict=True)
        }


def train(
    net: Net, hooks: Iterable[Any], steps: int = 10, run: Callable[..., Any] | None = None
) -> dict[str, Any]:
    """Trains; the variables at the end, by name. `run(session, feed)` runs a step."""
    run = run or (lambda session, feed: session.run([net.train, net.loss], feed))
    with net.graph.as_default():
        variables = tf1.global_variables()
        creator = tf1.train.ChiefSessionCreator(config=ONE_THREAD)
        with tf1.train.MonitoredSession(creator, hooks=list(hooks)) as session:
            for feed in batches(net, steps):
                run(session, feed)
            values = session.run_step_fn(lambda step_context: step_context.session.run(variables))
    return {variable.name: value for variable, value in zip(variables, values, strict=True)}
