"""Programs that run in several processes; `python torch_ranks.py CASE DIRECTORY` with RANK and WORLD_SIZE set.

What a test wants to compare with goes to DIRECTORY/seen_<rank>.pt.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import recorded
import torch
import torch.distributed as dist
from smdebug import _core
from smdebug.pytorch import Hook, ReductionConfig, SaveConfig, modes
from torch import nn
from torch.nn.parallel import DistributedDataParallel

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
EVERY_STEP = SaveConfig(save_interval=1)


class Net(nn.Module):
    """One layer."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x)


class Deep(nn.Module):
    """Layers whose rows do not divide evenly."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 9), nn.Tanh())
        self.out = nn.Linear(9, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.inner(x))


def join(where: Path) -> None:
    """Becomes a member of the group."""
    dist.init_process_group(
        "gloo", init_method=f"file://{where}/rendezvous", rank=RANK, world_size=SIZE
    )


def keep(where: Path, seen: Any) -> None:
    """Leaves what the test compares with."""
    torch.save(seen, where / f"seen_{RANK}.pt")


def train(model: nn.Module, hook: Any, raw: nn.Module | None = None) -> list[Any]:
    """Three steps; (parameters before, gradients after the reduction) of each."""
    raw = raw or model
    loss = nn.MSELoss()
    if hook is not None:
        hook.register_loss(loss)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(RANK)
    seen = []
    for _ in range(3):
        x = torch.randn(4, 3, generator=generator)
        before = {n: p.detach().clone() for n, p in raw.named_parameters()}
        optimizer.zero_grad()
        loss(model(x), torch.zeros(4, 2)).backward()
        seen.append((before, {n: p.grad.clone() for n, p in raw.named_parameters()}))
        optimizer.step()
    return seen


def ddp(where: Path, register: str, workers: str, early: bool, **options: Any) -> None:
    """Data parallel training, with the hook made before or after the group."""
    results = []
    for with_hook in (False, True):
        torch.manual_seed(1)
        hook = None
        arguments = {"save_all": True, "save_config": EVERY_STEP, "include_workers": workers}
        if with_hook and early:
            hook = Hook(where / "run", **arguments, **options)
        if not dist.is_initialized():
            join(where)
        if with_hook and not early:
            hook = Hook(where / "run", **arguments, **options)
        raw = Net()
        model = DistributedDataParallel(raw)
        if hook is not None:
            hook.register_module(model if register == "wrapper" else raw)
        results.append(train(model, hook, raw))
        if hook is not None:
            hook.close()
    plain, recorded_result = results
    for a, b in zip(plain, recorded_result, strict=True):
        assert all(torch.equal(a[i][name], b[i][name]) for i in (0, 1) for name in a[i])
    keep(where, recorded_result)


def early(where: Path) -> None:
    """The hook exists before the group does; the launcher's variables are not there."""
    torch.manual_seed(1)
    del os.environ["RANK"], os.environ["WORLD_SIZE"]
    hook = Hook(where / "run", save_all=True, save_config=EVERY_STEP)
    join(where)
    raw = Net()
    model = DistributedDataParallel(raw)
    hook.register_module(raw)
    keep(where, train(model, hook, raw))
    hook.close()


def sharded(where: Path, canonical: bool, raw: bool) -> None:
    """FSDP2 on an inner module and the root, with one evaluation between steps."""
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import DTensor

    join(where)
    outcomes = []
    for with_hook in (False, True):
        torch.manual_seed(2)
        model = Deep()
        plain = Deep()
        plain.load_state_dict(model.state_dict())
        fully_shard(model.inner)
        fully_shard(model)
        hook = None
        if with_hook:
            numbers = ["min", "max", "mean", "std", "sum"]
            config = ReductionConfig(numbers, numbers, ["l1", "l2"], save_raw_tensor=raw)
            hook = Hook(
                where / "run",
                save_config=EVERY_STEP,
                include_collections=["weights", "biases", "gradients"],
                include_workers="all",
                reduction_config=config,
                canonical_names=canonical,
            )
            hook.register_module(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        plain_optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
        seen = []
        for i in range(3):
            x = torch.randn(SIZE * 2, 4, generator=torch.Generator().manual_seed(i))
            before = {n: p.detach().clone() for n, p in plain.named_parameters()}
            if hook is not None:
                hook.set_mode(modes.TRAIN)
            for net, opt, part in (
                (model, optimizer, x[2 * RANK : 2 * RANK + 2]),
                (plain, plain_optimizer, x),
            ):
                opt.zero_grad()
                net(part).square().mean().backward()
            seen.append((before, {n: p.grad.clone() for n, p in plain.named_parameters()}))
            optimizer.step()
            plain_optimizer.step()
            if hook is not None:
                hook.set_mode(modes.EVAL)
            with torch.no_grad():
                model(x)
        if hook is not None:
            hook.close()
        outcomes.append(
            [p.to_local().clone() for p in model.parameters() if isinstance(p, DTensor)]
        )
    assert all(torch.equal(a, b) for a, b in zip(*outcomes, strict=True)) and outcomes[0]
    keep(where, seen)


def dying(where: Path) -> None:
    """The last rank is killed after two steps; the others end without it."""
    join(where)
    hook = Hook(where / "run", save_all=True, save_config=EVERY_STEP, include_workers="all")
    model = Net()
    hook.register_module(model)
    for i in range(4):
        model(torch.ones(1, 3)).sum().backward()
        if RANK == SIZE - 1 and i == 2:
            recorded.wait_for(where / "run" / _core.index_file_name(1, f"worker_{RANK}"))
            os.kill(os.getpid(), signal.SIGKILL)
    hook.close()


def elastic(where: Path) -> None:
    """The first attempt fails in its third step; the launcher starts all ranks again.

    There is no group: ranks come from the variables of the launcher.
    """
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    hook = Hook(where / "run", save_all=True, save_config=EVERY_STEP, include_workers="all")
    model = Net()
    hook.register_module(model)
    with torch.no_grad():
        model.fc.weight.fill_(float(attempt))
    for i in range(3):
        if attempt == 0 and i == 2:
            hook.end_step()
            for rank in range(SIZE):  # the launcher kills the others at once
                recorded.wait_for(where / "run" / _core.index_file_name(1, f"worker_{rank}"))
            raise SystemExit(1)
        model(torch.ones(1, 3)).sum().backward()
    hook.close()


def optimizer(where: Path) -> None:
    """Gradients as the optimizer sees them, after the reduction."""
    ddp(where, "raw", "all", False, gradient_source="optimizer")


def budget(where: Path) -> None:
    """All ranks record, and recording costs far more than it may."""
    join(where)
    model = DistributedDataParallel(Net())
    hook = Hook(
        where / "run",
        save_all=True,
        include_workers="all",
        reduction_config=ReductionConfig(["max"]),
        save_config=EVERY_STEP,
        max_overhead=1e-6,
        max_interval=16,
    )
    hook.register_module(model)
    for _ in range(120):
        model(torch.ones(4, 3)).sum().backward()
        model.zero_grad()
    hook.close()
    keep(where, hook.bill())


CASES = {
    "budget": budget,
    "wrapper": lambda where: ddp(where, "wrapper", "all", False),
    "raw_one": lambda where: ddp(where, "raw", "one", False),
    "canonical": lambda where: ddp(where, "wrapper", "all", False, canonical_names=True),
    "early": early,
    "optimizer": optimizer,
    "sharded": lambda where: sharded(where, False, True),
    "sharded_canonical": lambda where: sharded(where, True, False),
    "dying": dying,
    "elastic": elastic,
}

if __name__ == "__main__":
    torch.set_num_threads(1)
    CASES[sys.argv[1]](Path(sys.argv[2]))
    if dist.is_initialized() and sys.argv[1] != "dying":
        dist.barrier()
        dist.destroy_process_group()
