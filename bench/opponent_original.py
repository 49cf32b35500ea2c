"""Times the released package on the scenarios we are measured in, and prints JSON.

Run it inside the released package's environment:
tools/venv.sh original -- python bench/opponent_original.py [--quick] [--dir DIR]
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import ctypes
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

with contextlib.redirect_stdout(sys.stderr):
    import numpy as np
    from google.protobuf.internal import api_implementation
    from original_hook import FrameworkFreeHook, quiet
    from smdebug import SaveConfig, modes
    from smdebug.core.writer import FileWriter

REPEATS = 3
MIB = 1 << 20

Scenario = Callable[[Path], float]


def timed(action: Callable[[], None]) -> float:
    """Seconds one call takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def stored_tensors(out_dir: Path) -> int:
    """How many tensor records the index files of a run list."""
    indices = out_dir.glob("index/*/*.json")
    return sum(len(json.loads(path.read_text())["tensor_payload"]) for path in indices)


def best_of(base: Path, scenario: Scenario, tensors: int) -> dict:
    """Runs a scenario once to warm up and then REPEATS times, each in a directory of its own.

    `tensors` is how many must be stored afterwards: a hook that failed quietly must not look fast.
    """
    seconds = []
    for repeat in range(REPEATS + 1):
        out_dir = base / f"{repeat}"
        seconds.append(scenario(out_dir))
        if stored_tensors(out_dir) != tensors:
            raise RuntimeError(f"{stored_tensors(out_dir)} tensors are stored, not {tensors}.")
        shutil.rmtree(out_dir, ignore_errors=True)
    return {"seconds": min(seconds[1:]), "all_seconds": seconds[1:]}


def small_reductions(count: int) -> Scenario:
    """Many scalar reductions into one step."""
    values = np.arange(count, dtype=np.float32)
    names = [f"smdebug/reductions/min/layer{i}/weight" for i in range(count)]

    def write(out_dir: Path) -> None:
        writer = FileWriter(trial_dir=str(out_dir), worker="worker_0", step=0)
        for name, value in zip(names, values, strict=True):
            writer.write_tensor(tdata=value, tname=name, mode=modes.TRAIN, mode_step=0)
        writer.close()

    return lambda out_dir: timed(lambda: write(out_dir))


def scalars(steps: int, per_step: int) -> Scenario:
    """save_scalar in steps that save nothing else."""
    names = [f"metric{i}" for i in range(per_step)]

    def train(hook: FrameworkFreeHook) -> None:
        for step in range(steps):
            hook.begin_step()
            for name in names:
                hook.save_scalar(name, float(step))
            hook.end_step()

    return lambda out_dir: timed_training(out_dir, train)


def unsaved_steps(steps: int, per_step: int) -> Scenario:
    """Steps in which every tensor is offered and none is wanted."""
    value = np.zeros(16, dtype=np.float32)
    names = [f"layer{i}/weight" for i in range(per_step)]

    def train(hook: FrameworkFreeHook) -> None:
        for _ in range(steps):
            hook.begin_step()
            for name in names:
                hook.offer(name, value)
            hook.end_step()

    return lambda out_dir: timed_training(out_dir, train)


def timed_training(out_dir: Path, train: Callable[[FrameworkFreeHook], None]) -> float:
    """Seconds of a loop whose hook never wants a step, without setting up and closing."""
    never = SaveConfig(start_step=10**9)
    hook = FrameworkFreeHook(str(out_dir), save_config=never, save_all=True)
    seconds = timed(lambda: train(hook))
    hook.finish()
    return seconds


def large_tensor(array: np.ndarray) -> Scenario:
    """One large tensor, written and closed."""

    def write(out_dir: Path) -> None:
        writer = FileWriter(trial_dir=str(out_dir), worker="worker_0", step=0)
        writer.write_tensor(tdata=array, tname="weight", mode=modes.TRAIN, mode_step=0)
        writer.close()

    return lambda out_dir: timed(lambda: write(out_dir))


def numpy_save(array: np.ndarray) -> Scenario:
    """The same array through NumPy, for reference."""

    def scenario(out_dir: Path) -> float:
        out_dir.mkdir(parents=True)
        return timed(lambda: np.save(out_dir / "weight.npy", array))

    return scenario


def memory_bytes(field: str) -> int:
    """VmRSS (resident now) or VmHWM (highest so far) of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no field {field}.")


def extra_memory(base: Path, scenario: Scenario) -> int:
    """Bytes the process grows at its peak during one run of the scenario."""
    ctypes.CDLL(None).malloc_trim(0)  # Free memory that the allocator kept would hide growth.
    Path("/proc/self/clear_refs").write_text("5")  # Resets the highest value.
    before = memory_bytes("VmRSS")
    scenario(base / "memory")
    extra = memory_bytes("VmHWM") - before
    shutil.rmtree(base / "memory", ignore_errors=True)
    return extra


def measure(base: Path, quick: bool) -> dict:
    """All scenarios, each with its parameters."""
    scale = 10 if quick else 1
    reductions = 10_000 // scale
    steps, per_step = 100 // scale, 100
    unsaved = 1000 // scale
    size_mib = 16 if quick else 256
    array = np.random.default_rng(0).random(size_mib * MIB // 4, dtype=np.float32)
    hook = "The package's BaseHook, driven without a framework by tools/original_hook.py."
    writer = "FileWriter.write_tensor and close."
    return {
        "small_reductions": {
            "how": writer,
            "tensors": reductions,
            **best_of(base, small_reductions(reductions), reductions),
        },
        "save_scalar": {
            "how": hook,
            "steps": steps,
            "scalars_per_step": per_step,
            **best_of(base, scalars(steps, per_step), steps * per_step),
        },
        "large_tensor": {
            "how": writer,
            "size_bytes": array.nbytes,
            **best_of(base, large_tensor(array), 1),
            "peak_extra_bytes": extra_memory(base, large_tensor(array)),
        },
        "unsaved_step": {
            "how": hook + " What a framework's own callbacks add is not in it.",
            "steps": unsaved,
            "tensors_per_step": per_step,
            **best_of(base, unsaved_steps(unsaved, per_step), 0),
        },
        "numpy_save": {
            "how": "numpy.save of the array of large_tensor.",
            "size_bytes": array.nbytes,
            **best_of(base, numpy_save(array), 0),
            "peak_extra_bytes": extra_memory(base, numpy_save(array)),
        },
    }


def environment() -> dict:
    """What the numbers depend on."""
    from importlib.metadata import version

    return {
        "package": f"smdebug {version('smdebug')}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "protobuf": api_implementation.Type(),
        "protobuf_version": version("protobuf"),
        "cpus": os.cpu_count(),
        "machine": platform.machine(),
        "repeats": REPEATS,
        "reported": "best of the repeats, after one warm-up run",
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Times the released package.")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work, or less")
    parser.add_argument("--dir", help="where to write (default: a temporary directory)")
    options = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="smdebug-bench.", dir=options.dir))
    # Registered before any hook, so it runs after their exit handlers, which re-create directories.
    atexit.register(shutil.rmtree, base, ignore_errors=True)
    quiet()
    with contextlib.redirect_stdout(sys.stderr):
        results = measure(base, options.quick)
    print(json.dumps({"environment": environment(), "scenarios": results}, indent=1))


if __name__ == "__main__":
    main()
