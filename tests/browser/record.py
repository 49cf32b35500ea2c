"""Records the runs that the browser tests look at.

    record.py train OUT [--steps N] [--seed N] [--drift STEP] [--pause SECS] [--until FILE]
                         [--plain]
    record.py wide OUT [--tensors N] [--steps N]

`train` is a small network of four blocks with training and evaluation. Block 2 grows without bound after two
thirds of the run, and some tensors have names that pages must survive, unless it is plain. With RANK and WORLD_SIZE set it
records as one worker of several, and with a file named it ends when that file is there. `wide` has very many tensors of which only statistics are saved.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import smdebug
from smdebug import ReductionConfig, modes

BLOCKS = 4
SICK_BLOCK = 2
REDUCTIONS = ["min", "max", "mean", "std"]
NORMS = ["l2"]
EVAL_EVERY = 10
HOSTILE: dict[str, tuple[int, ...]] = {
    '<img src=x onerror="document.title=1">&amp;\'".weight': (3, 4),
    "größe.重み.\u202eעברית.weight": (2, 3),
    "long." + "very_long_name_" * 60 + "weight": (4,),
}


def train(
    out: str,
    steps: int,
    seed: int,
    drift: int,
    pause: float,
    until: Path | None,
    hostile: dict[str, tuple[int, ...]],
) -> None:
    """Writes a run of `steps` training steps; from step `drift` on its numbers are others than usual."""
    rng = np.random.default_rng(seed)
    hook = smdebug.Hook(
        out,
        save_all=True,
        include_workers="all",
        save_config={"save_interval": 1},
        reduction_config=ReductionConfig(reductions=REDUCTIONS, norms=NORMS, save_raw_tensor=True),
    )
    shapes: dict[str, tuple[int, ...]] = {
        f"block{i}.{part}.weight": (16, 24)
        for i in range(BLOCKS)
        for part in ("attention.query", "attention.key", "mlp.up", "mlp.down")
    }
    shapes |= {"embedding.kernel.weight": (3, 8, 8), "head.weight": (10, 16)}
    weights = {
        name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()
    }
    for step in range(steps):
        hook.set_mode(modes.TRAIN)
        with hook.step():
            growth = np.exp(max(0, step - 2 * steps // 3) / 2)
            for name, weight in weights.items():
                gradient = rng.standard_normal(weight.shape).astype(np.float32) * 0.9**step
                if step >= drift:
                    gradient *= 1.5
                if name.startswith(f"block{SICK_BLOCK}.mlp"):
                    gradient = (gradient * np.float32(growth)).astype(np.float32)
                    if step > steps - steps // 8:
                        gradient[0] = np.nan
                weight -= 0.01 * np.nan_to_num(gradient)
                hook.save_tensor(name, weight, "weights")
                hook.save_tensor(f"gradient/{name}", gradient, "gradients")
                hook.save_tensor(
                    f"{name.removesuffix('weight')}relu_output_0", np.maximum(gradient, 0)
                )
            for name, shape in hostile.items():
                hook.save_tensor(name, np.full(shape, step + 1, np.float32), "weights")
            hook.save_tensor(
                "CrossEntropyLoss_output_0", np.float32(2.3 * np.exp(-step / 30)), "losses"
            )
            hook.save_scalar("accuracy", 1 - np.exp(-step / 25))
        if step % EVAL_EVERY == 0:
            hook.set_mode(modes.EVAL)
            with hook.step():
                hook.save_tensor(
                    "CrossEntropyLoss_output_0", np.float32(2.4 * np.exp(-step / 32)), "losses"
                )
        if until is not None and until.exists():
            break
        time.sleep(pause)
    hook.close()


def wide(out: str, tensors: int, steps: int) -> None:
    """Writes a run of which only statistics are saved."""
    hook = smdebug.Hook(
        out,
        layout="packed",
        save_all=True,
        save_config={"save_interval": 1},
        reduction_config=ReductionConfig(reductions=["mean"], norms=NORMS),
    )
    names = [
        f"gradient/layers.{i // 12}.{'attention' if i % 12 < 6 else 'mlp'}.part{i % 12}.weight"
        for i in range(tensors)
    ]
    values = [np.full(2, 1 + i / tensors, np.float32) for i in range(tensors)]
    for step in range(steps):
        hook.step()
        for name, value in zip(names, values, strict=True):
            value[0] = 1 + step / steps
            hook.save(name, value)
    hook.close()


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["train", "wide"])
    parser.add_argument("out")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--drift", type=int, default=1 << 30)
    parser.add_argument("--pause", type=float, default=0)
    parser.add_argument("--until", type=Path)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--tensors", type=int, default=12_000)
    args = parser.parse_args()
    if args.what == "train":
        hostile = {} if args.plain else HOSTILE
        train(args.out, args.steps, args.seed, args.drift, args.pause, args.until, hostile)
    else:
        wide(args.out, args.tensors, args.steps)


if __name__ == "__main__":
    main()
