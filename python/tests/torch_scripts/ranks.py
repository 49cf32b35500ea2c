"""Data parallel training: `ranks.py torchrun`, or `ranks.py spawn|fork DIRECTORY` by itself."""

import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(rank, size, where):
    torch.set_num_threads(1)
    method = f"file://{where}/rendezvous" if where else "env://"
    dist.init_process_group("gloo", init_method=method, rank=rank, world_size=size)
    torch.manual_seed(1)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(3, 2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.mse_loss(
            model(torch.randn(4, 3, generator=generator)), torch.zeros(4, 2)
        ).backward()
        optimizer.step()
    if rank == 0:
        print(sum(p.sum().item() for p in model.parameters()))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    if sys.argv[1] in ("spawn", "fork"):
        mp.start_processes(train, (2, sys.argv[2]), nprocs=2, start_method=sys.argv[1])
    else:
        train(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), None)
