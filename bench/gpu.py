"""What recording costs on a CUDA device, beside the ways that need nothing but PyTorch.

    make bench-gpu                  needs PyTorch with CUDA in the Python that runs it
    python3 bench/gpu.py --rounds 1

A model of the size of GPT-2 small (124 M parameters), 16 x 1024 tokens, bfloat16 autocast, fused
AdamW. Each way runs between two runs without a hook, as long as it, so that a device that grows hot or
idles for a while does not favour one of them. Rows with an aim run in every round, others in a few.
It prints the table of docs/performance.md.
"""

from __future__ import annotations

import argparse
import datetime
import logging
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from smdebug.pytorch import Hook, ReductionConfig, SaveConfig
from torch import nn

WIDTH, LAYERS, HEADS, LENGTH, BATCH, WORDS = 768, 12, 12, 1024, 16, 50304
TEN = ReductionConfig(
    reductions=["min", "max", "mean", "std", "sum"],
    abs_reductions=["min", "max", "mean"],
    norms=["l1", "l2"],
)


class Attention(nn.Module):
    """Causal attention of a block."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1)
        )
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """One layer of the transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.norm2 = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.act = nn.GELU(approximate="tanh")
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.down(self.act(self.up(self.norm2(x))))


class Gpt(nn.Module):
    """The model; its embedding is also its head."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens) + self.places(torch.arange(LENGTH, device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Training:
    """A model that can make steps, and whatever is done beside them."""

    def __init__(self, compiled: bool) -> None:
        torch.manual_seed(0)
        self.net = Gpt().cuda()
        self.model = torch.compile(self.net) if compiled else self.net
        self.optimizer = torch.optim.AdamW(self.net.parameters(), 1e-4, fused=True)
        self.tokens = torch.randint(0, WORDS, (BATCH, LENGTH), device="cuda")
        self.before: Callable[[], None] = lambda: None  # the weights of a step
        self.after: Callable[[], None] = lambda: None  # its gradients

    def step(self) -> None:
        """One step."""
        self.optimizer.zero_grad()
        self.before()
        with torch.autocast("cuda", torch.bfloat16):
            logits = self.model(self.tokens)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), self.tokens.flatten())
        loss.backward()
        self.after()
        self.optimizer.step()

    def secs(self, steps: int) -> float:
        """Seconds of a step, with the device's work."""
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(steps):
            self.step()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / steps


@dataclass
class Way:
    """One row of the table: `begin` makes it ready and gives back what ends it."""

    name: str
    begin: Callable[[Training, str], Callable[[], None]]
    steps: int = 25
    compiled: bool = True  # makes sense for a compiled model
    warm: int = 4
    aims: tuple[str, ...] = ()  # eager, compiled

    @property
    def most_rounds(self) -> int:
        """What is far from any aim need not be known to a tenth of a percent."""
        return 1000 if self.aims else 2


def with_hook(**options: Any) -> Callable[[Training, str], Callable[[], None]]:
    """Records with a hook."""

    def begin(training: Training, folder: str) -> Callable[[], None]:
        hook = Hook(folder, layout="packed", **options)
        hook.register_module(training.model)

        def end() -> None:
            hook.close()

        return end

    return begin


def without_kernels(
    begin: Callable[[Training, str], Callable[[], None]],
) -> Callable[[Training, str], Callable[[], None]]:
    """As on devices that have none of our kernels."""

    def begin_so(training: Training, folder: str) -> Callable[[], None]:
        os.environ["SMDEBUG_DEVICE_KERNELS"] = "0"
        end = begin(training, folder)

        def end_so() -> None:
            end()
            del os.environ["SMDEBUG_DEVICE_KERNELS"]

        return end_so

    return begin_so


def six(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Six values, one operation each, as hooks of old do it."""
    return [
        value
        for x in tensors
        for value in (x.min(), x.max(), x.mean(), x.std(), x.norm(1), x.norm(2))
    ]


def stock(
    take: Callable[[list[torch.Tensor]], object],
) -> Callable[[Training, str], Callable[[], None]]:
    """Weights and gradients by PyTorch's own operations."""

    def begin(training: Training, folder: str) -> Callable[[], None]:
        parameters = list(training.net.parameters())

        def weights() -> None:
            with torch.no_grad():
                take([p.detach() for p in parameters])

        def gradients() -> None:
            with torch.no_grad():
                take([p.grad for p in parameters if p.grad is not None])

        training.before, training.after = weights, gradients

        def end() -> None:
            training.before = training.after = lambda: None

        return end

    return begin


def three_norms(tensors: list[torch.Tensor]) -> object:
    """What PyTorch has in one launch for a list."""
    return [torch._foreach_norm(tensors, order) for order in (1, 2, float("inf"))]


def outputs(training: Training, folder: str) -> Callable[[], None]:
    """Four values of the output of every module, by PyTorch's own operations."""

    def look(module: nn.Module, args: Any, output: Any) -> None:
        if isinstance(output, torch.Tensor):
            with torch.no_grad():
                output.min(), output.max(), output.float().mean(), output.float().std()

    handles = [module.register_forward_hook(look) for module in training.net.modules()]

    def end() -> None:
        for handle in handles:
            handle.remove()

    return end


def ways() -> list[Way]:
    """The rows."""
    every = SaveConfig(save_interval=1)
    kinds = ["weights", "biases", "gradients"]
    return [
        Way("no hook, to see the noise", lambda training, folder: lambda: None, aims=("",) * 2),
        Way(
            "hook, nothing to save",
            with_hook(save_config=SaveConfig(save_interval=10**9)),
            aims=("0.05 %", "0.05 %"),
        ),
        Way(
            "ten statistics of weights and gradients, every step",
            with_hook(save_config=every, include_collections=kinds, reduction_config=TEN),
            aims=("0.8 %", "1.2 %"),
        ),
        Way(
            "ten statistics of weights, gradients and all module outputs, every step",
            with_hook(
                save_config=every,
                include_regex=["^(?!.*_input_).*$"],
                reduction_config=TEN,
            ),
            compiled=False,
            aims=("5 %",),
        ),
        Way(
            "weights and gradients as they are (1 GB), every 10 steps",
            with_hook(save_config=SaveConfig(save_interval=10), include_collections=kinds),
            steps=40,
            warm=21,
            aims=("5 %", "5 %"),
        ),
        Way(
            "ten statistics of weights, gradients, module inputs and outputs, every step",
            with_hook(save_config=every, include_regex=[".*"], reduction_config=TEN),
            compiled=False,
        ),
        Way(
            "weights and gradients as they are, every 30 steps",
            with_hook(save_config=SaveConfig(save_interval=30), include_collections=kinds),
            steps=60,
            warm=31,
        ),
        Way(
            "ten statistics of weights and gradients, every step, without our kernels",
            without_kernels(
                with_hook(save_config=every, include_collections=kinds, reduction_config=TEN)
            ),
            steps=8,
        ),
        Way(
            "PyTorch's operations: six values of each, waited for",
            stock(lambda tensors: [value.item() for value in six(tensors)]),
            steps=8,
        ),
        Way("PyTorch's operations: six values of each, nobody waits", stock(six), steps=8),
        Way("PyTorch's operations: three norms of lists", stock(three_norms)),
        Way(
            "PyTorch's operations: four values of all module outputs",
            outputs,
            steps=8,
            compiled=False,
        ),
        Way(
            "weights and gradients by `cpu()`",
            stock(lambda tensors: [x.cpu() for x in tensors]),
            steps=2,
            warm=1,
        ),
    ]


@dataclass
class Measured:
    """What the rows added to a step, as shares of it, round by round."""

    step_secs: float
    shares: dict[str, list[float]]

    def text(self, name: str) -> str:
        """Median, and the middle half of the rounds."""
        shares = sorted(share * 100 for share in self.shares[name])
        middle = statistics.median(shares)
        if len(shares) < 4:
            return f"{middle:+.{1 if middle < 20 else 0}f} %"
        low, high = shares[len(shares) // 4], shares[-1 - len(shares) // 4]
        return f"{middle:+.2f} % ({low:.2f} to {high:.2f})"


def measure(compiled: bool, rows: list[Way], rounds: int, place: str | None) -> Measured:
    """Runs the rows that make sense for a model."""
    training = Training(compiled)
    rows = [way for way in rows if way.compiled or not compiled]
    added: dict[str, list[float]] = {way.name: [] for way in rows}
    bases: list[tuple[int, float]] = []  # number of steps, seconds of one

    def base(steps: int) -> float:
        training.secs(2)
        bases.append((steps, training.secs(steps)))
        return bases[-1][1]

    training.secs(6)
    base(rows[0].steps)
    for turn in range(rounds):
        for way in rows:
            if turn >= way.most_rounds:
                continue
            # The run after one way is the one before the next.
            last_steps, before = bases[-1]
            if last_steps != way.steps:
                before = base(way.steps)
            with tempfile.TemporaryDirectory(dir=place, ignore_cleanup_errors=True) as folder:
                end = way.begin(training, f"{folder}/run")
                training.secs(way.warm)
                secs = training.secs(way.steps)
                end()
            added[way.name].append(2 * secs / (before + base(way.steps)) - 1)
    return Measured(statistics.median(secs for _, secs in bases), added)


def print_table(rows: list[Way], found: dict[str, Measured]) -> None:
    """As docs/performance.md has it."""
    titles = [f"{model}, {one.step_secs * 1e3:.1f} ms" for model, one in found.items()]
    print("| " + " | ".join(["what", *titles, "aim"]) + " |")
    print("|---" * (len(titles) + 2) + "|")
    for way in rows:
        cells = [one.text(way.name) if way.name in one.shares else "–" for one in found.values()]
        print("| " + " | ".join([way.name, *cells, ", ".join(dict.fromkeys(way.aims))]) + " |")


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12, help="of the rows with an aim")
    parser.add_argument("--only", default="", help="rows with this in their name")
    parser.add_argument("--folder", help="where runs are written; a folder for temporary files")
    parser.add_argument("--model", choices=["eager", "compiled", "both"], default="both")
    args = parser.parse_args()
    logging.getLogger("smdebug").setLevel(logging.WARNING)
    rows = [way for way in ways() if args.only in way.name]
    if not rows:
        names = "\n    ".join(way.name for way in ways())
        parser.error(f"no row has '{args.only}' in its name; there are\n    {names}")
    if args.rounds < 1:
        parser.error(f"--rounds is 1 or more, not {args.rounds}")
    models = ["eager", "compiled"] if args.model == "both" else [args.model]
    found = {
        model: measure(model == "compiled", rows, args.rounds, args.folder) for model in models
    }
    print(
        f"{datetime.date.today():%d %B %Y}, {torch.cuda.get_device_name()}, PyTorch "
        f"{torch.__version__}, median (middle half) of {args.rounds} rounds:\n"
    )
    print_table(rows, found)


if __name__ == "__main__":
    main()
