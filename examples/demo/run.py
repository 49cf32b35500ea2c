"""Trains a network with a hidden fault, records it, and finds the fault in the recorded run.

    python examples/demo/run.py [--out DIR] [--steps N] [--svg FILE]

The first half is examples/numpy_mlp.py. The second half knows nothing of it: it reads the files of the
run, draws the size of each layer's gradient over time, and names the layer that stopped learning.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

try:
    from smdebug import _core
except ImportError as error:
    sys.exit(f"smdebug is not installed ({error}). Try: pip install .")

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy_mlp

GRADIENT_NORM = re.compile(r"^smdebug/reductions/l2/gradient/(.+)/weight$")
# A gradient this much smaller than that of the typical layer teaches nothing.
VANISHED = 1e-4
COLUMNS = 16
SHADES = " .:-=+*#%@"
COLOURS = ("#7f0000", "#a63603", "#d9730d", "#e6b800", "#a3b515", "#5aa02c", "#2e8b57", "#1f7a8c")

Table = dict[str, dict[int, float]]


@dataclass(frozen=True)
class Finding:
    layer: str
    step: int


def records(run: Path) -> Iterator[_core.EventRecord]:
    """Every saved tensor of a run, step by step: an index file says where each record lies."""
    for path in sorted(run.glob("index/*/*.json")):
        index = _core.parse_index(path.read_text(encoding="utf-8"), str(path))
        for _, offset, length in index["tensors"]:
            yield _core.read_record(str(run / index["event_file"]), offset, length)


def gradient_table(run: Path) -> Table:
    """layer → step → l2 norm of the gradient of its weights, layers in the order of recording."""
    table: Table = {}
    for record in records(run):
        name = GRADIENT_NORM.match(record.name)
        if name:
            table.setdefault(name[1], {})[record.step] = float(record.value[0])
    return table


def relative(table: Table) -> Table:
    """Each value over the median of all layers at its step: 1 is what is usual there."""
    steps = sorted({step for row in table.values() for step in row})
    usual = {
        step: statistics.median(row[step] for row in table.values() if step in row)
        for step in steps
    }
    return {
        layer: {step: value / usual[step] if usual[step] else 1.0 for step, value in row.items()}
        for layer, row in table.items()
    }


def find_fault(table: Table) -> Finding | None:
    """The layer whose gradient vanished first and stayed away, while that of others did not."""
    findings = []
    for layer, row in relative(table).items():
        healthy = [step for step, value in row.items() if value >= VANISHED]
        silent = [step for step in row if step > max(healthy, default=-1)]
        if silent:
            findings.append(Finding(layer, min(silent)))
    return min(findings, key=lambda finding: finding.step, default=None)


def level(value: float) -> float:
    """0 for a gradient that vanished, 1 for one of the usual size or more."""
    if value <= 0 or not math.isfinite(value):
        return 0.0
    return min(max(1 + math.log10(value) / -math.log10(VANISHED), 0.0), 1.0)


def columns_of(table: Table) -> list[int]:
    """At most COLUMNS steps, spread over the run, with the first and the last."""
    steps = sorted({step for row in table.values() for step in row})
    if len(steps) <= COLUMNS:
        return steps
    return [steps[round(i * (len(steps) - 1) / (COLUMNS - 1))] for i in range(COLUMNS)]


def verdict(finding: Finding | None) -> str:
    if finding is None:
        return "No layer stands out: every gradient has a usual size to the end."
    return (
        f"{finding.layer} has learned nothing since step {finding.step}: "
        "the gradient of its weights vanished there and did not come back."
    )


def plain_table(table: Table) -> str:
    """The picture in characters: blank is a vanished gradient, @ one of the usual size."""
    shares, steps = relative(table), columns_of(table)
    width = max(map(len, table))
    lines = ["size of each layer's weight gradient, compared with the other layers"]
    lines.append(" " * width + "  " + "".join(f"{step:>4}" for step in steps))
    for layer, row in shares.items():
        cells = (SHADES[round(level(row.get(s, 0)) * (len(SHADES) - 1))] for s in steps)
        lines.append(f"{layer:<{width}} |" + "".join(f"{cell * 3:>4}" for cell in cells) + " |")
    return "\n".join(lines)


def rich_table(table: Table, finding: Finding | None):
    """The picture in colours: red is a vanished gradient, blue one of the usual size."""
    from rich.table import Table as RichTable
    from rich.text import Text

    shares, steps = relative(table), columns_of(table)
    grid = RichTable(box=None, padding=(0, 0, 0, 1), title_justify="left", title_style="bold")
    grid.title = "Size of each layer's weight gradient, compared with the other layers"
    grid.add_column("step", justify="left", style="bold")
    for step in steps:
        grid.add_column(str(step), justify="center", header_style="dim", min_width=4)
    for layer, row in shares.items():
        is_sick = finding is not None and layer == finding.layer
        cells = [Text(f"▶ {layer}" if is_sick else f"  {layer}", "bold red" if is_sick else "")]
        for step in steps:
            colour = COLOURS[round(level(row.get(step, 0)) * (len(COLOURS) - 1))]
            cells.append(Text("████", colour))
        grid.add_row(*cells)
    return grid


def show(table: Table, finding: Finding | None, run: Path, svg: Path | None) -> None:
    try:
        from rich.console import Console
    except ImportError:
        if svg is not None:
            sys.exit("--svg needs the package rich. Try: pip install rich")
        Console = None
    if Console is not None and (svg is not None or sys.stdout.isatty()):
        drawing = rich_table(table, finding)
        if sys.stdout.isatty():
            Console(highlight=False).print(drawing, "", verdict(finding), sep="\n")
        if svg is not None:
            with open(os.devnull, "w", encoding="utf-8") as nowhere:
                console = Console(record=True, width=100, file=nowhere, highlight=False)
                console.print(drawing, "", verdict(finding), sep="\n")
            svg.parent.mkdir(parents=True, exist_ok=True)
            svg.write_text(
                console.export_svg(title="make demo", unique_id="demo"), encoding="utf-8"
            )
    if Console is None or not sys.stdout.isatty():
        print(plain_table(table), "", verdict(finding), sep="\n")
    print(f"The run is in {run}")


def prepare_out(out: Path | None, parser: argparse.ArgumentParser) -> Path:
    """An empty place for the run; replaces an older run, and nothing else."""
    if out is None:
        return Path(tempfile.mkdtemp(prefix="smdebug-demo-"))
    if out.exists() and not out.is_dir():
        parser.error(f"--out must be a directory, and this is a file: {out}")
    if out.is_dir() and any(out.iterdir()):
        if not (out / "collections").is_dir():
            parser.error(f"--out is not empty and holds no recorded run: {out}")
        shutil.rmtree(out)
    return out


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="directory for the run (default: a temporary one)")
    parser.add_argument("--steps", type=int, default=60, help="steps to train, at least 12")
    parser.add_argument("--svg", type=Path, help="also write the picture to this file")
    arguments = parser.parse_args(argv)
    if arguments.steps < 12:
        parser.error(f"--steps must be at least 12, not {arguments.steps}")
    run = prepare_out(arguments.out, parser)
    loss = numpy_mlp.train(run, arguments.steps)
    print(f"Trained {arguments.steps} steps; the loss is {loss:.3f} and looks fine.\n")
    table = gradient_table(run)
    show(table, find_fault(table), run, arguments.svg)
    return 0


if __name__ == "__main__":
    sys.exit(main())
