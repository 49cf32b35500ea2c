"""Trains a network with a hidden fault under `smdebug run`, and finds the fault in the recorded run.

    python examples/demo/run.py [--out DIR] [--steps N] [--svg FILE]

The training is examples/demo/train.py, an ordinary PyTorch script that knows nothing of smdebug;
where there is no PyTorch, it is the same network in NumPy, examples/numpy_mlp.py, which records
itself. This script knows nothing of the training: it follows the files of the run while they are
written, shows the size of each layer's gradient over time, names the layer that stopped learning,
says what the rules have found, and writes the report.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

try:
    import smdebug
    import smdebug.rules
    import smdebug.view
except ImportError as error:
    sys.exit(f"smdebug is not installed ({error}). Try: pip install .")

try:
    import rich.table
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text
except ImportError:
    rich = None  # plain text will do

TRAIN = Path(__file__).resolve().parent / "train.py"
TRAIN_IN_NUMPY = TRAIN.parents[1] / "numpy_mlp.py"
GRADIENT = re.compile(r"^gradient/(?:[^_/]+_)?([^/]+)[./]weight$")
# A gradient this much smaller than that of the typical layer teaches nothing.
VANISHED = 1e-4
COLUMNS = 11
FONT_FACE = re.compile(r"@font-face \{[^}]*\}\s*")  # the picture must not fetch anything
COLOURS = ("#b00020", "#c2410c", "#b45309", "#8a6d00", "#5f7a00", "#3f7d20", "#2f7d32", "#1b7a4b")

TITLE = "l2 norm of the gradient of each layer's weights"

Table = dict[str, dict[int, float]]


@dataclass(frozen=True)
class Finding:
    layer: str
    step: int


def gradient_table(run: Path) -> Table:
    """layer → step → l2 norm of the gradient of its weights; from the input to the output."""
    trial = smdebug.create_trial(run)
    table: Table = {}
    for name in trial.tensor_names(regex=GRADIENT.pattern):
        steps, norms = trial.tensor(name).series("l2")
        layer = GRADIENT.match(name)[1]
        table[layer] = dict(zip(steps.tolist(), norms.tolist(), strict=True))
    # The blocks between the two have numbers.
    order = {"input": 0, "output": 2}
    return dict(sorted(table.items(), key=lambda row: (order.get(row[0], 1), row[0])))


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


def columns_of(table: Table, finding: Finding | None) -> list[int]:
    """At most COLUMNS steps spread over the run: the first, the last, and that of the finding."""
    steps = sorted({step for row in table.values() for step in row})
    if len(steps) <= COLUMNS:
        return steps
    chosen = [steps[round(i * (len(steps) - 1) / (COLUMNS - 1))] for i in range(COLUMNS)]
    if finding is not None and finding.step not in chosen:
        nearest = min(range(1, COLUMNS - 1), key=lambda i: abs(chosen[i] - finding.step))
        chosen[nearest] = finding.step
    return sorted(chosen)


def verdict(finding: Finding | None) -> str:
    if finding is None:
        return "No layer stands out: every gradient has a usual size to the end."
    return (
        f"{finding.layer} has learned nothing since step {finding.step}: "
        "the gradient of its weights vanished there and did not come back."
    )


def short(value: float) -> str:
    """At most five characters."""
    return f"{value:.2g}" if value == 0 or value >= 0.01 else f"{value:.0e}"


def plain_table(table: Table, finding: Finding | None) -> str:
    """The picture without colours: ! marks a gradient that vanished."""
    shares, steps = relative(table), columns_of(table, finding)
    width = max(map(len, table)) + 2
    lines = [TITLE, f"{'step':<{width}}" + " ".join(f"{step:>6}" for step in steps)]
    for layer, row in table.items():
        mark = "> " if finding is not None and layer == finding.layer else "  "
        cells = (
            f"{short(row[s]):>6}{'!' if shares[layer][s] < VANISHED else ' '}"
            if s in row
            else " " * 7
            for s in steps
        )
        lines.append(f"{mark + layer:<{width}}" + "".join(cells).rstrip())
    return "\n".join(lines)


def rich_table(table: Table, finding: Finding | None) -> rich.table.Table:
    """The picture in colours: red is a gradient that vanished, green one of the usual size."""
    shares, steps = relative(table), columns_of(table, finding)
    grid = rich.table.Table(box=None, padding=0, title=TITLE, title_justify="left")
    grid.title_style = "bold"
    grid.add_column("step", no_wrap=True)
    for step in steps:
        grid.add_column(str(step), justify="center", header_style="dim", no_wrap=True)
    for layer, row in table.items():
        is_sick = finding is not None and layer == finding.layer
        cells = [Text(f"▶ {layer} " if is_sick else f"  {layer} ", "bold red" if is_sick else "")]
        for step in steps:
            value = row.get(step)
            share = shares[layer].get(step, 0)
            colour = COLOURS[round(level(share) * (len(COLOURS) - 1))]
            cells.append(
                Text(f"{short(value):^6}" if value is not None else "", f"white on {colour}")
            )
        grid.add_row(*cells)
    return grid


def picture(table: Table, finding: Finding | None) -> Group:
    """Table and verdict."""
    return Group(rich_table(table, finding), "", verdict(finding))


def write_svg(table: Table, finding: Finding | None, file: Path) -> None:
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=76, file=nowhere, highlight=False)
        console.print(picture(table, finding))
    svg = console.export_svg(title="make demo", unique_id="demo")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(FONT_FACE.sub("", svg), encoding="utf-8")


def train(run: Path, *arguments: str) -> subprocess.Popen[str]:
    """Starts the training under `smdebug run`: the gradients' norms at every second step."""
    if importlib.util.find_spec("torch") is None:
        print("PyTorch is not installed: the same network is trained in NumPy instead.")
        command = [sys.executable, str(TRAIN_IN_NUMPY), "--out", str(run)]
    else:
        command = [sys.executable, "-m", "smdebug.run", "--out", str(run), "--save", "gradients:2"]
        command += ["--reductions", "l2", str(TRAIN)]
    return subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True)


def finish(training: subprocess.Popen[str]) -> None:
    """Waits for the training and shows what it printed."""
    printed, _ = training.communicate()
    if training.returncode != 0:
        sys.exit(f"The training ended with exit code {training.returncode}.")
    print(printed)


def follow(run: Path, training: subprocess.Popen[str]) -> None:
    """Shows the table in the terminal while the training goes on."""
    with Live(console=Console(highlight=False), transient=True, refresh_per_second=10) as live:
        while training.poll() is None:
            time.sleep(0.1)
            try:
                table = gradient_table(run)
            except smdebug.exceptions.SMDebugError:
                continue  # the run has not begun
            if table:
                live.update(picture(table, find_fault(table)))


def show(table: Table, finding: Finding | None, svg: Path | None) -> None:
    if is_colourful():
        Console(highlight=False).print(picture(table, finding))
    else:
        print(plain_table(table, finding), "", verdict(finding), sep="\n")
    if svg is not None:
        write_svg(table, finding, svg)


def is_colourful() -> bool:
    return rich is not None and sys.stdout.isatty()


def findings(run: Path) -> str:
    """What rules say of the run, without what is only worth a note."""
    found = smdebug.rules.diagnose(run)["findings"]
    worst = [one for one in found if one["severity"] != "info"]
    if not worst:
        return "The rules have found nothing wrong."
    return "\n".join(f"{one['severity']}: {one['rule']}: {one['message']}" for one in worst)


def write_report(run: Path) -> Path:
    """The run as a page in one file."""
    report = run / "report.html"
    command = [smdebug.view.program(), "report", str(run), "--html", str(report)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"The report could not be written: {done.stderr.strip()}")
    return report


def page_command(run: Path) -> str:
    """What to type to look at the run in a browser."""
    return shlex.join([smdebug.view.program(), "serve", "--open", str(run)])


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
    if arguments.svg is not None and rich is None:
        parser.error("--svg needs the package rich; try: pip install rich")
    run = prepare_out(arguments.out, parser)
    live = is_colourful()
    training = train(run, "--steps", str(arguments.steps), *(["--pause", "0.05"] if live else []))
    if live:
        follow(run, training)
    finish(training)
    table = gradient_table(run)
    if not table:
        sys.exit(f"Nothing was recorded; the lines above say why. The run is in {run}")
    show(table, find_fault(table), arguments.svg)
    print("", findings(run), "", sep="\n")
    print(f"The run is in {run}")
    print(f"The report, for any browser: {write_report(run)}")
    print(f"See it on a live page: {page_command(run)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
