"""Trains transformers with and without a hook and answers questions about the time it takes.

Runs in one of two environments, with our package or with the original's, whose interfaces agree:
bench/training.py DIRECTORY. Each line of standard input is a question in JSON, each line of
standard output the answer; models and hooks stay from one question to the next.

PyTorch uses one thread: on a machine with other work, two that wait for each other make a step
take anything from once to ten times its time.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from desk import serve
from torch import nn

with contextlib.redirect_stdout(sys.stderr):
    from smdebug.pytorch import Hook, ReductionConfig, SaveConfig

TOKENS = 4096
LENGTH = 64
SIX = {"reductions": ["min", "max", "mean", "std"], "norms": ["l1", "l2"]}


class Attention(nn.Module):
    """Looks back at earlier tokens."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = 4
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """One layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.ln1 = nn.LayerNorm(width)
        self.attention = Attention(width)
        self.ln2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class Transformer(nn.Module):
    """Predicts the token that it sees."""

    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, width)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(layers)])
        self.ln = nn.LayerNorm(width)
        self.head = nn.Linear(width, TOKENS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.ln(self.blocks(self.embedding(x))))


class Chain(nn.Module):
    """Layers that cost next to nothing, so that what a hook adds can be seen."""

    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(*[nn.Linear(width, width) for _ in range(layers)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


MODELS: dict[str, Callable[[], Training]] = {
    "transformer": lambda: Training(Transformer(12, 256), batch=8),
    "short": lambda: Training(Transformer(12, 256), batch=1),
    "thin": lambda: Training(Transformer(12, 8), batch=1),
    "chain4": lambda: Training(Chain(4, 4)),
    "chain100": lambda: Training(Chain(100, 4)),
}

NEVER = 10**9


def idle(out_dir: str) -> Hook:
    """Everything is wanted, at no step that comes."""
    return Hook(out_dir, save_all=True, save_config=SaveConfig(start_step=NEVER))


def defaults(out_dir: str) -> Hook:
    """What a hook does unless told otherwise: losses, now and then."""
    return Hook(out_dir)


def loss(out_dir: str) -> Hook:
    """The loss of every step."""
    return Hook(out_dir, save_config=SaveConfig(save_interval=1))


def reductions(out_dir: str) -> Hook:
    """Six numbers of every parameter, gradient and output at every step."""
    return Hook(
        out_dir,
        save_config=SaveConfig(save_interval=1),
        reduction_config=ReductionConfig(**SIX),
        include_collections=["weights", "biases", "gradients"],
        include_regex=["_output_"],
    )


def raw(out_dir: str) -> Hook:
    """Parameters and gradients as they are, every tenth step."""
    return Hook(
        out_dir,
        save_config=SaveConfig(save_interval=10),
        include_collections=["weights", "biases", "gradients"],
    )


HOOKS = {f.__name__: f for f in (idle, defaults, loss, reductions, raw)}


class Training:
    """A model, its data, and perhaps a hook."""

    def __init__(self, model: nn.Module, batch: int = 1) -> None:
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), 0.01)
        self.criterion: nn.Module
        if isinstance(model, Chain):
            self.criterion, self.inputs = nn.MSELoss(), torch.ones(1, 4)
            self.target = torch.zeros(1, 4)
        else:
            self.criterion, self.inputs = nn.CrossEntropyLoss(), torch.arange(batch * LENGTH) % 100
            self.target = self.inputs
            self.inputs = self.inputs.view(batch, LENGTH)
        self.hook: Hook | None = None

    def attach(self, hook: Hook) -> None:
        """Records from now on."""
        self.hook = hook
        hook.register_module(self.model)
        hook.register_loss(self.criterion)

    def forward(self) -> torch.Tensor:
        """The model and its loss."""
        output = self.model(self.inputs)
        return self.criterion(output.view(len(self.target), -1), self.target)

    def step(self) -> None:
        """All of a step."""
        self.optimizer.zero_grad()
        self.forward().backward()
        self.optimizer.step()


def timed(action: Callable[[], object], count: int) -> list[float]:
    """[wall, processor] seconds of some calls."""
    wall, processor = time.perf_counter(), time.thread_time()
    for _ in range(count):
        action()
    return [time.perf_counter() - wall, time.thread_time() - processor]


class Desk:
    """Answers questions."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.known: dict[tuple[str, str], Training] = {}

    def training(self, model: str, hook: str) -> Training:
        """The model with that hook; made once."""
        key = model, hook
        if key not in self.known:
            torch.manual_seed(0)
            made = self.known[key] = MODELS[model]()
            if hook == "empty":  # what PyTorch takes to call anything
                made.model.register_forward_pre_hook(lambda *_: None)
                made.criterion.register_forward_hook(lambda *_: None)
            elif hook == "empty everywhere":
                made.model.register_forward_pre_hook(lambda *_: None)
                for module in (*made.model.modules(), made.criterion):
                    module.register_forward_hook(lambda *_: None, with_kwargs=True)
                for parameter in made.model.parameters():
                    parameter.register_hook(lambda _: None)
            elif hook:
                made.attach(HOOKS[hook](str(self.base / f"{model}-{hook}")))
            made.step()  # sets up
        return self.known[key]

    def pairs(self, model: str, hook: str, count: int, part: str = "step") -> list[list[float]]:
        """Seconds of `count` times a part of training, without and with the hook, in turns.

        Each is [wall, processor]: the latter is that of the training thread alone, which other work
        on the machine disturbs far less.
        """
        trainings = [self.training(model, ""), self.training(model, hook)]
        if part == "forward":  # too short to be timed one by one
            return [timed(training.forward, count) for training in trainings]
        found = [[timed(training.step, 1) for training in trainings] for _ in range(count)]
        return [
            [sum(column) for column in zip(*steps, strict=True)]
            for steps in zip(*found, strict=True)
        ]

    def callbacks(self, model: str, hook: str, count: int, part: str = "forward") -> float:
        """Seconds that the training thread spends in the callbacks of a forward and its loss, or of a
        step, waiting included, the median of some. Unlike a difference of steps this does not know
        what recording does to caches."""
        training = self.training(model, hook)
        action = training.forward if part == "forward" else training.step
        action()  # what it attaches stays for the next steps
        clock = time.perf_counter
        spent = 0.0

        def clocked(callback: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                nonlocal spent
                start = clock()
                result = callback(*args, **kwargs)
                spent += clock() - start
                return result

            return call

        places: list[dict[int, Any]] = []
        for module in (*training.model.modules(), training.criterion):
            places += [module._forward_pre_hooks, module._forward_hooks]
        places += [parameter._backward_hooks or {} for parameter in training.model.parameters()]
        kept = []
        for callbacks in places:
            for key, callback in callbacks.items():
                kept.append((callbacks, key, callback))
                callbacks[key] = clocked(callback)
        found = []
        for _ in range(count):
            spent = 0.0
            action()
            found.append(spent)
        for callbacks, key, callback in kept:
            assert key in callbacks, "callbacks have changed, so that not all were clocked"
            callbacks[key] = callback
        return statistics.median(found)

    def peak(self, model: str, hook: str, count: int) -> int:
        """Bytes by which the process grows at its peak during some steps, beyond what it does
        without the hook."""
        return self.growth(model, hook, count) - self.growth(model, "", count)

    def growth(self, model: str, hook: str, count: int) -> int:
        """The same with what training itself takes."""
        training = self.training(model, hook)
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
        before = memory_bytes("VmRSS")
        for _ in range(count):
            training.step()
        return memory_bytes("VmHWM") - before

    def floor(self, model: str) -> dict[str, float]:
        """Bytes of parameters, gradients and outputs, and seconds to read them once after a step."""
        training = self.training(model, "")
        tensors: list[torch.Tensor] = []
        handles = [
            module.register_forward_hook(lambda _m, _i, output: tensors.append(output))
            for module in training.model.modules()
        ]
        training.step()
        for handle in handles:
            handle.remove()
        for parameter in training.model.parameters():
            assert parameter.grad is not None
            tensors += [parameter, parameter.grad]
        compare = ctypes.CDLL(None).memcmp  # with itself: reads memory once, as fast as it goes
        calls = [
            (place := ctypes.c_void_p(tensor.data_ptr()), place, ctypes.c_size_t(tensor.nbytes))
            for tensor in tensors
        ]

        def read() -> None:
            for arguments in calls:
                compare(*arguments)

        _, seconds = timed(read, 1)
        return {"bytes": sum(tensor.nbytes for tensor in tensors), "seconds": seconds}

    def close(self) -> dict[str, int]:
        """Ends all hooks; how many files each run has."""
        found = {}
        for (model, hook), training in self.known.items():
            if training.hook is not None:
                training.hook.close()
                run = self.base / f"{model}-{hook}"
                found[f"{model}-{hook}"] = sum(len(files) for _, _, files in os.walk(run))
        return found


def memory_bytes(field: str) -> int:
    """VmRSS (resident now) or VmHWM (highest so far) of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no field {field}.")


def main() -> None:
    torch.set_num_threads(1)
    serve(Desk(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
