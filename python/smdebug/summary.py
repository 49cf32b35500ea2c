"""What a run or a tensor looks like when it is printed, as text and for notebooks."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from smdebug._core import ModeKeys
from smdebug.exceptions import SMDebugError

if TYPE_CHECKING:
    from smdebug.tensor import Tensor
    from smdebug.trial import Trial

_MOST_TENSORS = 30
_MOST_NAME = 300  # characters
_MOST_POINTS = 200
_BLOCKS = "▁▂▃▄▅▆▇█"
# Values of which no reduction was saved are read for a picture up to this many elements.
_MOST_ELEMENTS = 1 << 24
# What is shown of a tensor that is no single number, in this order of preference.
_PREFERRED = ("mean", "abs_mean", "l2", "max")


def _printable(text: str) -> str:
    """Names come from files that somebody else wrote: they must not move a terminal's cursor."""
    if len(text) > _MOST_NAME:
        text = text[:_MOST_NAME] + "…"
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _span(steps: list[int]) -> str:
    if not steps:
        return "no steps"
    if len(steps) == 1:
        return f"step {steps[0]}"
    return f"{len(steps)} steps {steps[0]}…{steps[-1]}"


def _curve(tensor: Tensor) -> tuple[str, np.ndarray, np.ndarray] | None:
    """(what, steps, numbers) for a small picture; None if there is nothing to draw."""
    trial = tensor.trial
    steps = trial._core.tensor_steps(tensor.name, ModeKeys.GLOBAL, True)
    if not steps:
        return None
    try:
        stored: Any = trial._core.reduction_values(tensor.name, steps[-1], ModeKeys.GLOBAL, None)
        names = {("abs_" if absolute else "") + op for op, absolute in stored or {}}
        wanted = next((name for name in _PREFERRED if name in names), min(names, default=""))
        if not wanted:
            shape: Any = trial._core.shape(tensor.name, steps[-1], ModeKeys.GLOBAL, None) or ()
            elements = math.prod(shape)
            if elements * len(steps) > _MOST_ELEMENTS:
                return None
            wanted = "" if elements == 1 else _PREFERRED[0]
        series: Any = trial._core.series(tensor.name, wanted, ModeKeys.GLOBAL, "", True)
    except SMDebugError:
        return None
    found, values = series
    if not len(found):
        return None
    if len(found) > _MOST_POINTS:
        kept = np.linspace(0, len(found) - 1, _MOST_POINTS).astype(int)
        found, values = found[kept], values[kept]
    return wanted or "value", found, values


def _blocks(values: np.ndarray, width: int = 24) -> str:
    if len(values) > width:
        values = values[np.linspace(0, len(values) - 1, width).astype(int)]
    finite = values[np.isfinite(values)]
    if not len(finite):
        return "×" * len(values)
    low, high = float(finite.min()), float(finite.max())
    scale = (len(_BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BLOCKS[int((v - low) * scale)] if np.isfinite(v) else "×" for v in values)


def _sparkline(values: np.ndarray, width: int = 160, height: int = 24) -> str:
    """A line as SVG; gaps where numbers are not finite."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return "<span>no finite numbers</span>"
    low, high = float(finite.min()), float(finite.max())
    y_scale = (height - 4) / (high - low) if high > low else 0.0
    x_scale = (width - 4) / max(1, len(values) - 1)
    parts: list[str] = []
    pen = "M"
    for i, value in enumerate(values):
        if not np.isfinite(value):
            pen = "M"
            continue
        parts.append(f"{pen}{2 + i * x_scale:.1f} {height - 2 - (value - low) * y_scale:.1f}")
        pen = "L"
    return (
        f'<svg width="{width}" height="{height}" role="img">'
        f'<path d="{" ".join(parts)}" fill="none" stroke="#2563eb" stroke-width="1.5"/></svg>'
    )


def _range_text(values: np.ndarray) -> str:
    bad = int((~np.isfinite(values)).sum())
    finite = values[np.isfinite(values)]
    text = f"{finite.min():.4g}…{finite.max():.4g}" if len(finite) else "no finite numbers"
    return text + (f", {bad} not finite" if bad else "")


def _modes_text(trial: Trial) -> str:
    core = trial._core
    parts = [f"{mode.name} {len(core.steps(mode, True))}" for mode in core.modes()]
    return f" ({', '.join(parts)})" if parts else ""


def _headline(trial: Trial) -> str:
    core = trial._core
    names = core.tensor_names(ModeKeys.GLOBAL, None, None, None)
    workers = core.workers
    state = "ended" if core.has_ended else "running"
    return (
        f"{len(names)} tensors, {_span(core.steps(ModeKeys.GLOBAL, True))}{_modes_text(trial)}, "
        f"{len(workers)} worker{'s' if len(workers) != 1 else ''}, {state}"
    )


def trial_text(trial: Trial) -> str:
    """A few lines about a run."""
    names = trial.tensor_names()
    lines = [f"{type(trial).__name__} '{trial.name}': {_headline(trial)}", f"  at {trial.path}"]
    for name in names[:_MOST_TENSORS]:
        curve = _curve(trial.tensor(name))
        shown = (
            f"  {_printable(curve[0])} {_blocks(curve[2])} {_range_text(curve[2])}" if curve else ""
        )
        lines.append(f"  {_printable(name)}{shown}")
    if len(names) > _MOST_TENSORS:
        lines.append(f"  … and {len(names) - _MOST_TENSORS} more; see tensor_names()")
    return "\n".join(lines)


def trial_html(trial: Trial) -> str:
    """A table of a run with a small picture per tensor."""
    names = trial.tensor_names()
    rows = "".join(_row(trial.tensor(name)) for name in names[:_MOST_TENSORS])
    more = len(names) - _MOST_TENSORS
    note = f"<p>… and {more} more tensors; see <code>tensor_names()</code></p>" if more > 0 else ""
    return (
        f"<div><b>{escape(trial.name)}</b> {escape(_headline(trial))}<br>"
        f"<code>{escape(trial.path)}</code><table><tr><th>tensor</th><th>steps</th><th>what</th>"
        f"<th>over time</th><th>range</th></tr>{rows}</table>{note}</div>"
    )


def _row(tensor: Tensor) -> str:
    steps = tensor.trial._core.tensor_steps(tensor.name, ModeKeys.GLOBAL, True)
    curve = _curve(tensor)
    cells = [escape(_printable(tensor.name)), str(len(steps))]
    if curve:
        cells += [escape(_printable(curve[0])), _sparkline(curve[2]), escape(_range_text(curve[2]))]
    else:
        cells += ["", "", ""]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _shape_text(tensor: Tensor, step: int) -> str:
    try:
        shape: Any = tensor.trial._core.shape(tensor.name, step, ModeKeys.GLOBAL, None)
    except SMDebugError:
        return ""
    if shape is None:
        return ""
    text = str(tuple(shape))
    return f", shape {text[:_MOST_NAME]}{'…' if len(text) > _MOST_NAME else ''}"


def tensor_text(tensor: Tensor) -> str:
    """A few lines about a tensor."""
    tensor.trial._refresh()
    core = tensor.trial._core
    steps = core.tensor_steps(tensor.name, ModeKeys.GLOBAL, True)
    head = f"Tensor '{_printable(tensor.name)}' of '{tensor.trial.name}': {_span(steps)}"
    if not steps:
        return head
    lines = [head + _shape_text(tensor, steps[-1])]
    curve = _curve(tensor)
    if curve:
        lines.append(f"  {_printable(curve[0])} {_blocks(curve[2], 60)} {_range_text(curve[2])}")
    try:
        stored: Any = core.reduction_values(tensor.name, steps[-1], ModeKeys.GLOBAL, None)
    except SMDebugError as error:
        lines.append(f"  at step {steps[-1]}: {_printable(str(error))}")
        return "\n".join(lines)
    if stored:
        parts = [
            f"{'abs_' if a else ''}{_printable(op)} {value:.4g}"
            for (op, a), value in stored.items()
        ]
        lines.append(f"  at step {steps[-1]}: {', '.join(parts)}")
    return "\n".join(lines)


def tensor_html(tensor: Tensor) -> str:
    """A picture of a tensor over time, and its last reductions."""
    text = escape(tensor_text(tensor)).splitlines()
    curve = _curve(tensor)
    picture = _sparkline(curve[2], 480, 80) if curve else ""
    last = f"<br>{text[-1].strip()}" if len(text) > 1 + bool(curve) else ""
    return f"<div><b>{text[0]}</b><br>{picture}{last}</div>"
