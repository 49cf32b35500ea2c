"""A worker of a distributed store: `mxnet_worker.py HOW WHERE`. Saves what it has seen itself.

HOW is `object` or `name`: how the store is given to the trainer; `bare` records nothing.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd


def main(how: str, where: Path) -> None:
    """Three steps with data that depend on the rank."""
    number = int(os.environ["TEST_WORKER"])
    net = gluon.nn.Dense(1, in_units=3, use_bias=False)
    net.initialize(mx.init.Constant(0.5))
    hook = None
    if how != "bare":
        from smdebug.mxnet import Hook, SaveConfig

        every = SaveConfig(save_interval=1)
        hook = Hook(where / "run", save_all=True, save_config=every, include_workers="all")
        hook.register_block(net)
    store: Any = "dist_sync" if how == "name" else mx.kv.create("dist_sync")
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore=store)
    seen: dict[str, np.ndarray] = {}
    for at in range(3):
        x = nd.array([[1, 2, 3]]) * (at + 1) + 10 * number
        with autograd.record():
            output = net(x).sum()
        output.backward()
        seen[f"gradient_{at}"] = net.weight.grad().asnumpy()
        trainer.step(1)
        seen[f"weight_{at}"] = net.weight.data().asnumpy()
    seen["rank"] = np.array(trainer._kvstore.rank)
    if hook is not None:
        hook.close()
        assert "step" not in vars(trainer)
    np.savez(where / f"seen_{how}_{number}.npz", **seen)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
