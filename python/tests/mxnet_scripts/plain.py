"""A training script that does not know of smdebug: `plain.py KIND [BATCHES]`. Prints what it learnt."""

import hashlib
import sys

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn


def main(kind, count=3):
    mx.random.seed(0)
    random = np.random.RandomState(0)
    fixed = nn.Dense(3, in_units=3)  # used, but not trained
    fixed.initialize()
    net = nn.HybridSequential()
    net.add(nn.Dense(4, activation="relu"), nn.Dense(2))
    net.initialize(mx.init.Xavier())
    if kind == "hybrid":
        net.hybridize()
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    for step in range(count):
        x = fixed(nd.array(random.randn(5, 3)))
        y = nd.array(random.randint(0, 2, 5))
        with autograd.record():
            error = loss(net(x), y)
        error.backward()
        trainer.step(5)
        print(step, float(x[0, 0].asscalar()), float(error[0].asscalar()))
        if kind == "evaluate":
            net(x).wait_to_read()
    if kind == "fail":
        raise SystemExit(3)
    values = b"".join(p.data().asnumpy().tobytes() for p in net.collect_params().values())
    print(hashlib.sha256(values).hexdigest())


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
