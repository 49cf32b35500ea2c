"""Trains a sharded model in several processes and reads whole tensors back.

    torchrun --nproc-per-node 2 examples/pytorch/sharded.py [--out DIR]

Each process records the part of every parameter that it holds. The first one puts them together.
"""

from __future__ import annotations

import argparse

import smdebug.pytorch as smd
import torch
import torch.distributed as dist
from smdebug import shards
from torch import nn
from torch.distributed.fsdp import fully_shard


def main() -> None:
    """Trains three steps and prints what the run holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="runs/sharded", help="directory of the run")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 3))
    fully_shard(model)
    hook = smd.Hook(
        args.out,
        include_collections=["weights", "gradients"],
        save_config=smd.SaveConfig(save_interval=1),
        include_workers="all",
        canonical_names=True,
    )
    hook.register_module(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(4, 6)).square().mean().backward()
        optimizer.step()
    hook.close()
    dist.barrier()
    if dist.get_rank() == 0:
        trial = smd.create_trial(args.out)
        for part in shards.parts(trial, "Sequential_0.weight", 2):
            print(part.worker, "holds", part.local_shape, "from", part.offset)
        print("together", shards.value(trial, "Sequential_0.weight", 2).shape)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
