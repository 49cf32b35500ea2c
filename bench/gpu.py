"""What a step costs on a CUDA device with the hook, beside the same step without one.

    make bench-gpu        needs PyTorch with CUDA in the Python that runs it

Six reductions of all weights, gradients and module outputs at every step; the loss alone; nothing.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable

import torch
from smdebug.pytorch import Hook, ReductionConfig, SaveConfig
from torch import nn

STEPS = 30
ROUNDS = 5


class Block(nn.Module):
    """One layer of a transformer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            part.unflatten(-1, (16, -1)).transpose(1, 2)
            for part in self.attention(self.norm1(x)).chunk(3, -1)
        )
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


def step_secs(make_hook: Callable[[str], Hook] | None) -> float:
    """The median seconds of a step, the device's work included."""
    torch.manual_seed(0)
    width, length, batch = 1024, 512, 24
    net = nn.Sequential(*(Block(width) for _ in range(12)), nn.Linear(width, 256)).cuda().bfloat16()
    optimizer = torch.optim.AdamW(net.parameters(), 1e-4, fused=True)
    x = torch.randn(batch, length, width, device="cuda", dtype=torch.bfloat16)
    y = torch.randint(0, 256, (batch, length), device="cuda")
    with tempfile.TemporaryDirectory() as folder:
        hook = make_hook(f"{folder}/run") if make_hook else None
        if hook:
            hook.register_module(net)
        loss_of = nn.CrossEntropyLoss()
        if hook:
            hook.register_loss(loss_of)
        times = []
        for _ in range(STEPS):
            torch.cuda.synchronize()
            start = time.perf_counter()
            # Two steps, so that the second may be queued while the first runs.
            for _ in range(2):
                optimizer.zero_grad()
                loss = loss_of(net(x).flatten(0, 1), y.flatten())
                loss.backward()
                optimizer.step()
            torch.cuda.synchronize()
            times.append((time.perf_counter() - start) / 2)
        if hook:
            hook.close()
    return statistics.median(times[5:])


def main() -> None:
    """Prints the table."""

    def reductions(out_dir: str) -> Hook:
        return Hook(
            out_dir,
            layout="packed",
            save_config=SaveConfig(save_interval=1),
            include_regex=[".*"],
            reduction_config=ReductionConfig(
                reductions=["min", "max", "mean", "std"], norms=["l1", "l2"]
            ),
        )

    def loss(out_dir: str) -> Hook:
        return Hook(
            out_dir,
            layout="packed",
            save_config=SaveConfig(save_interval=1),
            include_collections=["losses"],
        )

    def idle(out_dir: str) -> Hook:
        return Hook(out_dir, layout="packed", save_config=SaveConfig(save_interval=100_000))

    rows = {"no hook": None, "idle": idle, "loss": loss, "six reductions of all": reductions}
    found: dict[str, list[float]] = {name: [] for name in rows}
    for _ in range(ROUNDS):
        for name, make_hook in rows.items():
            found[name].append(step_secs(make_hook))
    base = min(found["no hook"])
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    for name, secs in found.items():
        print(f"{name:24} {min(secs) * 1e3:8.2f} ms  {(min(secs) / base - 1) * 100:+6.2f} %")


if __name__ == "__main__":
    main()
