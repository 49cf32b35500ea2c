#!/usr/bin/env python3
"""Prints our speed beside the original's and NumPy's, all measured in this run.

The original runs in its own environment with protobuf in pure Python, which makes its small writes
two to four times slower than a build with the C++ protobuf would be; the table says so.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass
from pathlib import Path

import boosting_rows
import gluon_rows
import keras_rows
import numpy as np
import packed_rows
import page_rows
import reading_rows
import smdebug
import training_rows

ROOT = Path(__file__).resolve().parents[1]
MIB = 1 << 20
REPEATS = 5
MARKS = ("<!-- make bench -->", "<!-- end of make bench -->")

Scenario = Callable[[Path], float]


@dataclass
class Row:
    """One line of the table."""

    what: str
    ours: str
    theirs: str
    ratio: str
    aim: str


def best(base: Path, scenario: Scenario) -> float:
    """The fastest of a few repeats, after a warm-up, each in a directory of its own."""
    seconds = []
    for repeat in range(REPEATS + 1):
        out_dir = base / str(repeat)
        seconds.append(scenario(out_dir))
        shutil.rmtree(out_dir, ignore_errors=True)
    return min(seconds[1:])


def small_reductions(count: int, steps: int) -> Scenario:
    """`min` of many one-element tensors, in a few steps, through the hook, with close."""
    value = np.ones(1, np.float32)
    names = [f"layer{i}/weight" for i in range(count)]
    wanted = smdebug.ReductionConfig(reductions=["min"])

    def run(out_dir: Path) -> float:
        hook = smdebug.Hook(
            out_dir, save_all=True, save_config={"save_interval": 1}, reduction_config=wanted
        )
        start = time.perf_counter()
        for _ in range(steps):
            hook.step()
            for name in names:
                hook.save(name, value)
        hook.close()
        return time.perf_counter() - start

    return run


def written_reductions(count: int) -> Scenario:
    """The original's own scenario: many small tensors through a FileWriter, with close."""
    from smdebug.core.writer import FileWriter

    values = np.arange(count, dtype=np.float32)
    names = [f"smdebug/reductions/min/layer{i}/weight" for i in range(count)]

    def run(out_dir: Path) -> float:
        start = time.perf_counter()
        writer = FileWriter(trial_dir=str(out_dir), worker="worker_0", step=0)
        for name, value in zip(names, values, strict=True):
            writer.write_tensor(tdata=value, tname=name, mode=smdebug.modes.TRAIN, mode_step=0)
        writer.close()
        return time.perf_counter() - start

    return run


def scalars(steps: int, per_step: int) -> Scenario:
    """save_scalar, with close."""
    names = [f"metric{i}" for i in range(per_step)]

    def run(out_dir: Path) -> float:
        hook = smdebug.Hook(out_dir)
        start = time.perf_counter()
        for step in range(steps):
            hook.step()
            value = float(step)
            for name in names:
                hook.save_scalar(name, value)
        hook.close()
        return time.perf_counter() - start

    return run


def large_tensor(array: np.ndarray, pause: list[float]) -> Scenario:
    """One large tensor, with close; `pause` gets how long the training thread was held."""

    def run(out_dir: Path) -> float:
        hook = smdebug.Hook(out_dir, save_all=True, save_config={"save_interval": 1})
        hook.step()
        start = time.perf_counter()
        hook.save_tensor("weight", array)
        held = time.perf_counter()
        hook.close()
        pause.append(held - start)
        return time.perf_counter() - start

    return run


def numpy_save(array: np.ndarray) -> Scenario:
    """The same array through numpy.save."""

    def run(out_dir: Path) -> float:
        out_dir.mkdir(parents=True)
        start = time.perf_counter()
        np.save(out_dir / "weight.npy", array)
        return time.perf_counter() - start

    return run


def idle_steps(count: int) -> Scenario:
    """Steps at which nothing is saved."""

    def run(out_dir: Path) -> float:
        hook = smdebug.Hook(out_dir, save_config={"start_step": 10**9})
        hook.step()
        start = time.perf_counter()
        for _ in range(count):
            hook.step()
        seconds = time.perf_counter() - start
        hook.close()
        return seconds / count

    return run


def memory_bytes(field: str) -> int:
    """VmRSS (resident now) or VmHWM (highest so far) of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no field {field}.")


def extra_memory(base: Path, scenario: Scenario) -> int:
    """Bytes the process grows at its peak during one run of the scenario."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = memory_bytes("VmRSS")
    scenario(base / "memory")
    shutil.rmtree(base / "memory", ignore_errors=True)
    return memory_bytes("VmHWM") - before


def opponent(quick: bool) -> dict:
    """The original's numbers, measured now in its own environment."""
    command = [ROOT / ".venvs/original/bin/python", ROOT / "bench/opponent_original.py"]
    done = subprocess.run(
        [str(part) for part in command] + (["--quick"] if quick else []),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": ""},
    )
    return json.loads(done.stdout)


def native(program: str, pattern: str) -> dict[str, dict]:
    """Results of a C++ benchmark by name."""
    done = subprocess.run(
        [
            str(ROOT / "build/bench" / program),
            f"--benchmark_filter={pattern}",
            "--benchmark_format=json",
            "--benchmark_min_time=0.5",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return {row["name"]: row for row in json.loads(done.stdout)["benchmarks"]}


def find(results: dict[str, dict], part: str) -> dict:
    """The benchmark whose name begins with `part`."""
    for name, row in results.items():
        if name.startswith(part):
            return row
    raise SystemExit(f"bench: there is no benchmark '{part}'; there are {', '.join(results)}.")


def duration(seconds: float) -> str:
    """With a unit that reads well."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def recording(base: Path, quick: bool) -> list[Row]:
    """Rows about recording."""
    theirs = opponent(quick)["scenarios"]
    rows = []

    count = theirs["small_reductions"]["tensors"]
    each = theirs["small_reductions"]["seconds"] / count
    written = best(base, written_reductions(count)) / count
    rows.append(
        Row(
            f"a small tensor, {count:,} through a FileWriter",
            duration(written),
            duration(each),
            f"{each / written:.0f}×",
            "≥ 100×",
        )
    )
    first = best(base, small_reductions(count, 1)) / count
    ours = best(base, small_reductions(count, 5)) / (5 * count)
    rows.append(
        Row(
            f"a small reduction, {count:,} in one new step",
            duration(first),
            duration(each),
            f"{each / first:.0f}×",
            "",
        )
    )
    rows.append(
        Row(
            f"a small reduction, {count:,} a step, 5 steps",
            duration(ours),
            duration(each),
            f"{each / ours:.0f}×",
            "≥ 100×",
        )
    )

    scalar = theirs["save_scalar"]
    each = scalar["seconds"] / (scalar["steps"] * scalar["scalars_per_step"])
    ours = best(base, scalars(100, 1000)) / 100_000
    rows.append(
        Row(
            "save_scalar from Python, with close",
            duration(ours),
            duration(each),
            f"{each / ours:.0f}×",
            "≥ 50×, ≥ 300 k/s",
        )
    )
    hook = native("hook_bench", "step_that_saves_nothing$|thousand_scalars/in_100_steps")
    rate = find(hook, "thousand_scalars")["calls_per_s"]
    rows.append(
        Row(
            "save_scalar from C++, with close",
            duration(1 / rate),
            duration(each),
            f"{each * rate:.0f}×",
            "≥ 1 M/s",
        )
    )

    size = theirs["large_tensor"]["size_bytes"]
    array = np.random.default_rng(0).random(size // 4, dtype=np.float32)
    pause: list[float] = []
    ours = best(base, large_tensor(array, pause))
    saved = best(base, numpy_save(array))
    each = theirs["large_tensor"]["seconds"]
    label = f"one {size // MIB} MiB tensor"
    rows.append(
        Row(f"{label}, with close", duration(ours), duration(each), f"{each / ours:.1f}×", "≥ 15×")
    )
    rows.append(
        Row(
            f"{label}, beside numpy.save",
            duration(ours),
            duration(saved) + " (NumPy)",
            f"{ours / saved:.2f} of it",
            "≤ 1.5",
        )
    )
    rows.append(
        Row(
            f"{label}, training thread held",
            duration(min(pause)),
            duration(each),
            f"{each / min(pause):.1f}×",
            "",
        )
    )
    grown = extra_memory(base, large_tensor(array, pause))
    other = theirs["large_tensor"]["peak_extra_bytes"]
    rows.append(
        Row(
            f"{label}, extra memory",
            f"{grown / MIB:.0f} MiB",
            f"{other / MIB:.0f} MiB",
            f"{other / max(grown, 1):.1f}×",
            "≤ queue limit",
        )
    )

    unsaved = theirs["unsaved_step"]
    each = unsaved["seconds"] / unsaved["steps"]
    ours = best(base, idle_steps(100_000))
    rows.append(
        Row(
            "a step that saves nothing, Python",
            duration(ours),
            duration(each),
            f"{each / ours:.0f}×",
            "≤ 1 µs",
        )
    )
    idle = find(hook, "step_that_saves_nothing")["real_time"] * 1e-9
    rows.append(
        Row(
            "a step that saves nothing, C++",
            duration(idle),
            duration(each),
            f"{each / idle:.0f}×",
            "≤ 100 ns",
        )
    )

    reduce = native("reduce_bench", "read|float32")
    for name, row in reduce.items():
        if "of_read" in row and "float32" in name:
            rows.append(
                Row(
                    f"reduce: {name.split('/', 1)[-1]}",
                    duration(row["real_time"] * 1e-3),
                    "reading the bytes",
                    f"{row['of_read']:.0%} of read",
                    "≥ 70 %" if "typical" in name else "",
                )
            )
    return rows


def reading(base: Path, quick: bool) -> list[Row]:
    """Rows about reading."""
    return [Row(*line) for line in reading_rows.lines(base, quick, duration)]


def packed(base: Path, quick: bool) -> list[Row]:
    """Rows about the packed layout."""
    small = opponent(quick)["scenarios"]["small_reductions"]
    each = small["seconds"] / small["tensors"]
    place = base / "packed"
    place.mkdir()
    return [Row(*line) for line in packed_rows.lines(place, quick, native, each, duration)]


def histogram_rows(base: Path, quick: bool) -> list[Row]:
    """Histograms for TensorBoard beside PyTorch's SummaryWriter: time of the training thread."""
    count, elements = (5, 1 << 20) if quick else (50, 1_000_000)
    seconds = {}
    for who, environment in (("ours", "dev"), ("theirs", "summary_writer")):
        done = subprocess.run(
            [
                str(ROOT / ".venvs" / environment / "bin" / "python"),
                str(ROOT / "bench" / "histograms.py"),
                *(who, str(count), str(elements), str(base / f"histograms-{who}")),
            ],
            env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
            capture_output=True,
            text=True,
            check=True,
        )
        seconds[who] = json.loads(done.stdout.splitlines()[-1])["step"]
    return [
        Row(
            f"histograms of {count} tensors of {elements / 1e6:.0f} M values for TensorBoard",
            f"{seconds['ours'] * 1e3:.0f} ms",
            f"{seconds['theirs'] * 1e3:.0f} ms (SummaryWriter)",
            f"{seconds['theirs'] / seconds['ours']:.0f}x",
            "20x",
        )
    ]


def training(base: Path, quick: bool) -> list[Row]:
    """Rows about training with PyTorch."""
    return [Row(*line) for line in training_rows.lines(base, quick, duration)]


def boosting(base: Path, quick: bool) -> list[Row]:
    """Rows about boosting with XGBoost."""
    return [Row(*line) for line in boosting_rows.lines(base, quick, duration)]


def gluon(base: Path, quick: bool) -> list[Row]:
    """Rows about training with MXNet."""
    return [Row(*line) for line in gluon_rows.lines(base, quick, duration)]


def keras_training(base: Path, quick: bool) -> list[Row]:
    """Rows about training with Keras."""
    return [Row(*line) for line in keras_rows.lines(base, quick, duration)]


def page(base: Path, quick: bool) -> list[Row]:
    """Rows about the page and its server."""
    return [Row(*line) for line in page_rows.lines(base, quick, duration)]


PARTS = {
    "recording": ("Recording", recording),
    "reading": ("Reading", reading),
    "packed": ("The packed layout", packed),
    "tensorboard": ("Histograms for TensorBoard", histogram_rows),
    "torch": ("Training with PyTorch", training),
    "xgboost": ("Boosting with XGBoost", boosting),
    "mxnet": ("Training with MXNet", gluon),
    "keras": ("Training with Keras", keras_training),
    "page": ("The page", page),
}
HEAD = Row("scenario", "ours", "original", "ratio", "aim")


def show(rows: list[Row]) -> None:
    """The table, in plain text."""
    columns = list(zip(*[astuple(row) for row in [HEAD, *rows]], strict=True))
    widths = [max(len(cell) for cell in column) for column in columns]
    for index, row in enumerate(zip(*columns, strict=True)):
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
        if index == 0:
            print("  ".join("-" * width for width in widths))
    print(flush=True)


def machine() -> str:
    """The kind of this machine, in words."""
    model = next(
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} processors ({model}), {memory:.0f} GiB of memory"


def markdown(title: str, rows: list[Row]) -> str:
    """The table of a part, with date and machine."""
    lines = [f"### {title}", "", f"{time.strftime('%-d %B %Y')}, {machine()}:", ""]
    lines += ["| " + " | ".join(astuple(HEAD)) + " |", "|---" * len(astuple(HEAD)) + "|"]
    lines += ["| " + " | ".join(astuple(row)) + " |" for row in rows]
    return "\n".join([*lines, ""])


def replace_tables(page: str, tables: dict[str, str]) -> str:
    """The page with these tables, by their titles, between the marks; others stay as they are."""
    before, begin, rest = page.partition(MARKS[0])
    old, end, after = rest.partition(MARKS[1])
    if not begin or not end:
        raise ValueError(f"The marks {' and '.join(MARKS)} are not in the page.")
    _, *parts = old.split("\n### ")
    known = {part.partition("\n")[0]: f"### {part.rstrip()}\n" for part in parts}
    shown = [(known | tables).get(title, "") for title, _ in PARTS.values()]
    text = "\n".join(filter(None, shown))
    return f"{before}{begin}\n\n{text}\n{end}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Our speed beside the original's, in one run.")
    parser.add_argument("--quick", action="store_true", help="smaller sizes; ratios mean less")
    parser.add_argument("--only", choices=sorted(PARTS), help="one part of the table")
    parser.add_argument("--dir", help="where to write (default: a temporary directory)")
    parser.add_argument(
        "--into", type=Path, help=f"also put the tables between {' and '.join(MARKS)} of a page"
    )
    options = parser.parse_args()
    print(
        "The original runs with protobuf in pure Python; its small writes could be 2 to 4 times faster."
    )
    base = Path(tempfile.mkdtemp(prefix="smdebug-bench.", dir=options.dir))
    tables: dict[str, list[Row]] = {}
    try:
        for name, (title, part) in PARTS.items():
            if options.only not in (None, name):
                continue
            print(f"--- {title}", flush=True)
            tables[title] = part(base, options.quick)
            show(tables[title])
    finally:
        shutil.rmtree(base, ignore_errors=True)
    if options.into:
        made = {title: markdown(title, rows) for title, rows in tables.items()}
        options.into.write_text(replace_tables(options.into.read_text(), made))
    return 0


if __name__ == "__main__":
    sys.exit(main())
