"""A script that records by itself: `own_hook.py WHEN DIRECTORY`."""

import sys

import smdebug.pytorch as smd
import torch
from torch import nn


def main(when, where):
    torch.manual_seed(0)
    model, loss = nn.Sequential(nn.Linear(3, 2)), nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = None
    for step in range(4):
        if (when == "first" and step == 0) or (when == "late" and step == 2):
            every = smd.SaveConfig(save_interval=1)
            hook = smd.Hook(where, save_config=every, include_collections=["weights"])
            hook.register_module(model)
            hook.register_loss(loss)
        if when == "get_hook" and step == 2:
            hook = smd.get_hook(create_if_not_exists=True)
            hook.register_module(model)
            hook.register_loss(loss)
        optimizer.zero_grad()
        loss(model(torch.ones(4, 3)), torch.zeros(4, 2)).backward()
        optimizer.step()
    hook.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
