"""The rows of the table about the packed layout, beside the original's layout and its own code."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import reading_rows
import smdebug
from reading_rows import Line, ours_and_theirs, read
from smdebug import ReductionConfig
from smdebug.trials import create_trial

MIB = 1 << 20
REPEATS = 15
REDUCTIONS = ["min", "max", "mean"]

Native = Callable[[str, str], dict[str, dict]]
Text = Callable[[float], str]


def alternately(*actions: Callable[[], object]) -> list[float]:
    """The best seconds of each, taken in turns, so that a busy machine disturbs all alike."""
    best = [float("inf")] * len(actions)
    for _ in range(REPEATS + 1):
        for i, action in enumerate(actions):
            start = time.perf_counter()
            action()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def record(out_dir: Path, layout: str, tensors: int, steps: int) -> None:
    """A finished run of three reductions of each tensor."""
    hook = smdebug.Hook(
        out_dir,
        layout=layout,
        save_all=True,
        save_config={"save_interval": 1},
        reduction_config=ReductionConfig(reductions=REDUCTIONS),
    )
    value = np.ones(2, np.float32)
    names = [f"block{i // 10}/layer{i % 10}/weight" for i in range(tensors)]
    for step in range(steps):
        hook.step()
        value[0] = step
        for name in names:
            hook.save(name, value)
    hook.close()


def writing(native: Native, theirs_each: float, text: Text) -> list[Line]:
    """A step on the writer thread, and scalars."""
    found = native("writer_bench", "step_of_2000_reductions")
    packed = next(row for name, row in found.items() if "packed" in name)
    original = next(row for name, row in found.items() if "original" in name)
    # What other programs on the machine take is not the sink's.
    secs, before = packed["cpu_time"] * 1e-6, original["cpu_time"] * 1e-6
    rows: list[Line] = [
        (
            "packed: a step of 2,000 reductions, CPU time of the writer",
            text(secs),
            f"{text(before)} (our original layout)",
            f"{before / secs:.0f}×",
            "≤ 60 µs",
        ),
        (
            "packed: the same step beside the original's code",
            text(secs),
            text(2000 * theirs_each),
            f"{2000 * theirs_each / secs:.0f}×",
            "",
        ),
        (
            "packed: bytes per value of it",
            f"{packed['bytes_per_value']:.2f} B",
            f"{original['bytes_per_value']:.0f} B",
            f"{original['bytes_per_value'] / packed['bytes_per_value']:.0f}×",
            "≤ 5 B",
        ),
    ]
    scalars = native("hook_bench", "thousand_scalars/packed")
    rate = next(iter(scalars.values()))["calls_per_s"]
    rows.append(
        (
            "packed: save_scalar from C++, durable at close",
            f"{rate / 1e6:.2f} M/s",
            f"{1 / theirs_each:,.0f}/s (its FileWriter)",
            f"{rate * theirs_each:.0f}×",
            "≥ 1 M/s",
        )
    )
    return rows


def opening(base: Path, quick: bool, text: Text) -> list[Line]:
    """Opening a run of many writers."""
    workers, steps, tensors = (8, 20, 500) if quick else (64, 50, 500)
    reading_rows.write_reductions(base / "wide", workers, steps, tensors)
    packed_copy(base / "wide-packed", workers, steps, tensors)
    _, theirs = ours_and_theirs("open", base / "wide")
    python, package = reading_rows.OUR_PYTHON, reading_rows.OUR_PACKAGE
    found = [read(python, "open", base / "wide-packed", package) for _ in range(5)]
    ours = min(found, key=lambda one: one["secs"])
    assert ours["steps"] == theirs["steps"] == steps
    trial = create_trial(base / "wide-packed")
    assert len(trial.workers()) == workers
    assert trial.matrix("min", worker=f"worker_{workers - 1}").values.shape == (tensors, steps)
    label = f"packed: open {workers * steps * tensors:,} values of {workers} writers"
    return [
        (
            label,
            text(ours["secs"]),
            text(theirs["secs"]),
            f"{theirs['secs'] / ours['secs']:.0f}×",
            "≤ 50 ms",
        ),
        (
            f"{label}, memory",
            f"{ours['memory_mb']:.0f} MB",
            f"{theirs['memory_mb']:.0f} MB",
            f"{theirs['memory_mb'] / max(ours['memory_mb'], 0.1):.0f}×",
            "≤ 30 MB",
        ),
    ]


def packed_copy(out_dir: Path, workers: int, steps: int, tensors: int) -> None:
    """The run of reading_rows.write_reductions in the packed layout."""
    hooks = []
    for w in range(workers):
        with environment(RANK=str(w), WORLD_SIZE=str(workers)):
            hooks.append(
                smdebug.Hook(
                    out_dir,
                    layout="packed",
                    include_workers="all",
                    save_all=True,
                    save_config={"save_interval": 1},
                    reduction_config=ReductionConfig(reductions=["min"]),
                )
            )
    value = np.ones(1, np.float32)
    for hook in hooks:
        for step in range(steps):
            hook.step()
            value[0] = step
            for i in range(tensors):
                hook.save(f"layer{i}/weight", value)
    for hook in hooks:
        hook.close()


@contextlib.contextmanager
def environment(**variables: str):
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def matrix(base: Path, quick: bool, text: Text) -> list[Line]:
    """One statistic of all tensors and steps; the original's loop on a part of it."""
    tensors, steps = (1200, 200) if quick else (12_000, 1_000)
    record(base / "columns", "packed", tensors, steps)
    trial = create_trial(base / "columns")
    values = trial.matrix("mean").values
    assert values.shape == (tensors, steps)
    assert values[0, 3] == 2
    del values
    [ours] = alternately(lambda: trial.matrix("mean"))
    some, few = 60, 20
    record(base / "part", "original", some, few)
    python = reading_rows.ROOT / ".venvs/original/bin/python"
    theirs = read(python, "mean", base / "part", "")
    assert theirs["values"] == some * few
    whole = theirs["secs"] / theirs["values"] * tensors * steps
    return [
        (
            f"packed: one statistic of {tensors:,} tensors × {steps:,} steps into NumPy",
            text(ours),
            f"{whole:,.0f} s, extrapolated from {some * few:,} values",
            f"{whole / ours:,.0f}×",
            "≤ 0.2 s",
        )
    ]


def raw(base: Path, quick: bool, text: Text) -> list[Line]:
    """Whole tensors beside plain files."""
    size = 64 * MIB if quick else 256 * MIB
    array = np.random.default_rng(0).random(size // 4, dtype=np.float32)
    content = memoryview(array).cast("B")
    run, plain = base / "packed-raw", base / "plain.bin"

    def ours() -> None:
        shutil.rmtree(run, ignore_errors=True)
        hook = smdebug.Hook(run, layout="packed", save_all=True, save_config={"save_interval": 1})
        hook.step()
        hook.save_tensor("weight", array)
        hook.close()

    def theirs() -> None:
        plain.unlink(missing_ok=True)
        file = os.open(plain, os.O_CREAT | os.O_WRONLY)
        written = 0
        while written < size:
            written += os.write(file, content[written:])
        os.close(file)

    wrote, wrote_plain = alternately(ours, theirs)
    tensor = create_trial(run).tensor("weight")
    step = tensor.steps()[0]
    assert np.array_equal(tensor.value(step), array)
    (segment,) = (path for path in (run / "v2/seg").rglob("*") if path.is_file())
    place = segment.read_bytes().index(content[:256])
    summed, summed_same, summed_plain, copied, copied_plain = alternately(
        lambda: tensor.value(step).sum(),
        lambda: np.memmap(segment, np.float32, "r", place, array.shape).sum(),
        lambda: np.memmap(plain, np.float32, mode="r").sum(),
        lambda: tensor.value(step).copy(),
        lambda: np.array(np.memmap(plain, np.float32, mode="r")),
    )
    label = f"packed: one {size // MIB} MiB tensor"
    lines: list[Line] = []
    for what, mine, other, opponent in (
        ("written with checksums", wrote, wrote_plain, "write()"),
        ("read and summed", summed, summed_same, "np.memmap of the segment"),
        ("read and summed", summed, summed_plain, "np.memmap of a plain file"),
        ("read and copied", copied, copied_plain, "np.memmap of a plain file"),
    ):
        lines.append(
            (
                f"{label} {what}",
                text(mine),
                f"{text(other)} ({opponent})",
                f"{other / mine:.0%} of its speed",
                "≥ 80 %",
            )
        )
    return lines


def lines(base: Path, quick: bool, native: Native, theirs_each: float, text: Text) -> list[Line]:
    """All rows; `theirs_each` is what a small tensor costs the original, `text` shows seconds."""
    return [
        *writing(native, theirs_each, text),
        *opening(base, quick, text),
        *matrix(base, quick, text),
        *raw(base, quick, text),
    ]
