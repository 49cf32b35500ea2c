"""Tells what a run would record, from the first steps of the script: `smdebug plan`.

The script runs with a hook that writes nothing (`smdebug/rehearsal.py`), and ends after a few
steps. From what the hook has seen and the configuration follows when, how much, and how slow.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import sys
import tempfile
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any

from smdebug import _core, run_config
from smdebug.child import run_child
from smdebug.exceptions import SMDebugRuntimeError
from smdebug.run import (
    Parser,
    add_options,
    choice_of,
    command_of,
    environment_of,
    positive,
    script_of,
)
from smdebug.run_config import Choice

DEFAULT_INTERVAL = 500  # of hooks for networks
BOOSTING_INTERVAL = 10
STEPS = 1000  # that sizes and overhead are told for
SAVE_KEYS = ("save_interval", "save_steps", "start_step", "end_step", "when_nan")
LEFT_OUT = ("max_overhead", "export_tensorboard", "tensorboard_dir", "dry_run")
# About: what a step and a record take beside their content; a record holds its name twice, once in
# the index. Packed statistics are numbers without a record of their own.
STEP_BYTES = 150
RECORD_BYTES = 200
NUMBER_BYTES = 4
REDUCTION_PREFIX = "smdebug/reductions/mean/"


def rehearsal_of(document: dict[str, Any]) -> dict[str, Any]:
    """The configuration with every step saved and nothing written."""

    def strip(parameters: dict[str, Any] | None) -> dict[str, Any]:
        kept = dict(parameters or {})
        for key in list(kept):
            if key.rpartition(".")[2] in SAVE_KEYS or key in LEFT_OUT:
                del kept[key]
        return kept

    collections = [
        {**c, "CollectionParameters": strip(c.get("CollectionParameters"))}
        for c in document.get("CollectionConfigurations") or []
    ]
    parameters = strip(document.get("HookParameters")) | {"save_interval": 1, "dry_run": True}
    return {
        **document,
        "HookParameters": parameters,
        "CollectionConfigurations": collections,
    }


class Plan:
    """What follows from what the script has shown and from the configuration."""

    def __init__(self, document: dict[str, Any], found: dict[str, Any]) -> None:
        self._found = found
        interval = BOOSTING_INTERVAL if found["is_boosting"] else DEFAULT_INTERVAL
        self._config = _core.parse_hook_config(document, interval)
        default = self._config["save_config"] or _core.SaveConfig(save_interval=interval)
        self._save = {c["name"]: c["save_config"] or default for c in self._config["collections"]}
        self._default = default
        self._layout = self._config["layout"] or os.environ.get("SMDEBUG_LAYOUT") or "original"
        self._wants = {c["name"]: c for c in found["collections"]}
        self._budget = (document.get("HookParameters") or {}).get("max_overhead")
        self._patterns = [("default", p) for p in self._config["include_regex"]]
        for collection in document.get("CollectionConfigurations") or []:
            given = (collection.get("CollectionParameters") or {}).get("include_regex") or []
            if given == run_config.PATTERNS.get(collection["CollectionName"]):
                continue  # nobody has written it
            for pattern in given.split(",") if isinstance(given, str) else given:
                self._patterns.append((collection["CollectionName"], pattern.strip()))

    def document(self) -> dict[str, Any]:
        """Everything, for programs."""
        tensors = [self._tensor(t) for t in self._found["tensors"]]
        sets = [self._active(step) for step in range(STEPS)]
        full = frozenset(self._wants)
        step_secs, hook_secs = self._times()
        overhead = sum(map(self._cost_share, sets)) * hook_secs / (STEPS * step_secs)
        if self._budget is not None:
            overhead = min(overhead, float(self._budget))
        return {
            "models": self._found["models"],
            "steps_run": len(self._found["steps"]),
            "collections": [self._collection(name) for name in self._wants],
            "tensors": tensors,
            "saved_steps_per_1000": sum(bool(active) for active in sets),
            "bytes_per_full_step": self._bytes(full),
            "bytes_per_1000_steps": sum(map(self._bytes, sets)),
            "step_secs": step_secs,
            "hook_secs_per_full_step": hook_secs,
            "predicted_overhead": overhead,
            "max_overhead": self._budget,
            "unmatched": self._unmatched(),
        }

    def _save_config(self, name: str) -> Any:
        return self._save.get(name, self._default)

    def _active(self, step: int) -> frozenset[str]:
        mode = _core.ModeKeys.TRAIN
        return frozenset(
            name for name in self._wants if self._save_config(name).should_save_step(mode, step)
        )

    def _tensor(self, tensor: dict[str, Any]) -> dict[str, Any]:
        saved = {key: tensor[key] for key in ("name", "shape", "dtype", "collections")}
        raw, reductions = self._content(tensor, frozenset(self._wants))
        return {**saved, "saves_values": raw, "reductions": sorted(reductions)}

    def _content(self, tensor: dict[str, Any], active: frozenset[str]) -> tuple[bool, set[str]]:
        """Whether values are saved, and which statistics."""
        raw, reductions = False, set()
        for name in active.intersection(tensor["collections"]):
            raw = raw or self._wants[name]["raw"]
            if not _core.is_scalar_collection(name):
                reductions.update(self._wants[name]["reductions"])
        return raw, reductions

    def _tensor_bytes(self, tensor: dict[str, Any], active: frozenset[str]) -> int:
        raw, reductions = self._content(tensor, active)
        record = RECORD_BYTES + 2 * len(tensor["name"])
        number = NUMBER_BYTES
        if self._layout == "original":
            number += record + 2 * len(REDUCTION_PREFIX)
        elif tensor["shape"] in ([], [1]) and tensor["dtype"] != "str":
            record = 0  # packed like a statistic
        if tensor["bytes"] == 0:
            record = 2 * len(tensor["name"])  # stored under another name
        return number * len(reductions) + (tensor["bytes"] + record if raw else 0)

    @cache  # noqa: B019
    def _bytes(self, active: frozenset[str]) -> int:
        content = sum(self._tensor_bytes(tensor, active) for tensor in self._found["tensors"])
        return content + STEP_BYTES if content else 0

    @cache  # noqa: B019
    def _cost_share(self, active: frozenset[str]) -> float:
        """The part of a full step's cost that a step with these collections has."""
        total = sum(t["secs"] for t in self._found["tensors"]) or 1.0
        held = [t for t in self._found["tensors"] if active.intersection(t["collections"])]
        return sum(t["secs"] for t in held) / total

    def _times(self) -> tuple[float, float]:
        """Seconds of a step without recording, and of recording everything in one."""
        steps = self._found["steps"]
        steps = steps[1:] or steps  # the first one allocates and compiles
        hook = statistics.median(step["hook_secs"] for step in steps)
        own = statistics.median(step["secs"] - step["hook_secs"] for step in steps)
        return max(own, 1e-9), hook

    def _collection(self, name: str) -> dict[str, Any]:
        held = [t for t in self._found["tensors"] if name in t["collections"]]
        one = frozenset({name})
        return {
            "name": name,
            "when": _when(self._save_config(name)),
            "tensors": len(held),
            "saves_values": self._wants[name]["raw"],
            "reductions": []
            if _core.is_scalar_collection(name)
            else self._wants[name]["reductions"],
            "bytes_per_step": sum(self._tensor_bytes(tensor, one) for tensor in held),
        }

    def _unmatched(self) -> list[dict[str, Any]]:
        found = []
        for name, pattern in self._patterns:
            tried = _core.Collection(name)
            tried.include_regex = [pattern]
            if not any(tried.holds(tensor) for tensor in self._found["names"]):
                found.append(
                    {
                        "collection": name,
                        "pattern": pattern,
                        "near": near(pattern, self._found["names"]),
                    }
                )
        return found


def near(pattern: str, names: Sequence[str]) -> list[str]:
    """Names that come close to what a pattern was meant to match."""
    plain = re.sub(r"\\[a-zA-Z]|[\\^$*+?.()|{}\[\]]", "", pattern)
    close = get_close_matches(plain, names, 3, 0.5)
    if close or not plain:
        return close
    # A part of a name that was misspelt: compare with parts of the same length.
    scored = []
    for name in names:
        parts = {name[i : i + len(plain)] for i in range(max(1, len(name) - len(plain) + 1))}
        if get_close_matches(plain, parts, 1, 0.6):
            scored.append(name)
    return scored[:3]


def _when(config: Any) -> str:
    """The steps of training in words."""
    mode = config.get_save_config(_core.ModeKeys.TRAIN)
    words = []
    if mode.end_step != 0:
        every = (
            "every step"
            if mode.save_interval == 1
            else f"every {run_config.ordinal(mode.save_interval)} step"
        )
        begin = f" from {mode.start_step}" if mode.start_step else ""
        end = f" before {mode.end_step}" if mode.end_step is not None else ""
        words.append(every + begin + end)
    if mode.save_steps:
        words.append("steps " + ", ".join(map(str, mode.save_steps)))
    if mode.when_nan:
        words.append("when there is a NaN in " + ", ".join(mode.when_nan))
    return "; ".join(words) or "never"


def make(choice: Choice, program: Sequence[str], steps: int) -> dict[str, Any]:
    """Runs the first steps of a program; what recording it would be like."""
    command = command_of(program)
    configured = os.environ.get("SMDEBUG_CONFIG_FILE_PATH")
    if choice == Choice() and configured:
        choice = Choice(config=configured)
    document = run_config.document_of(choice, run_config.place_of(choice.out, script_of(program)))
    with tempfile.TemporaryDirectory(prefix="smdebug-plan-") as folder:
        # Nothing may be found at the place of the run, and nothing is left there.
        rehearsal = rehearsal_of(document) | {"LocalPath": os.path.join(folder, "run")}
        environment = environment_of(run_config.write(rehearsal, folder))
        environment.setdefault("SMDEBUG_LOG_LEVEL", "error")
        environment["USE_SMDEBUG"] = "1"
        report = os.path.join(folder, "report.json")
        environment["SMDEBUG_PLAN"] = json.dumps({"steps": steps, "report": report})
        code = run_child(command, environment, stdout=sys.stderr)
        if not os.path.exists(report):
            raise SMDebugRuntimeError(
                f"The script has ended with {_ending(code)} before a model was trained, so there "
                "is nothing to tell."
            )
        with open(report, encoding="utf-8") as file:
            found = json.load(file)
    if not found["steps"]:
        raise SMDebugRuntimeError("The script has not completed a step of training.")
    if found["is_boosting"]:
        from smdebug.boosting.automatic import document_for_boosting

        document = document_for_boosting(document)
    return {"place": document.get("LocalPath", ""), **Plan(document, found).document()}


def _ending(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


def size_text(size_bytes: float) -> str:
    """A size for people."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size_bytes < 1024 or unit == "TiB":
            return f"{size_bytes:.0f} B" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1024
    raise AssertionError


def show(plan: dict[str, Any]) -> None:
    """The plan for people."""
    rows = [
        ("models", ", ".join(plan["models"])),
        ("tensors", f"{len(plan['tensors'])}, seen in {plan['steps_run']} steps"),
        ("steps", f"{plan['saved_steps_per_1000']} of 1,000 save something"),
        (
            "size",
            f"about {size_text(plan['bytes_per_full_step'])} for a step that saves everything, "
            f"{size_text(plan['bytes_per_1000_steps'])} for 1,000 steps",
        ),
        (
            "overhead",
            f"about {plan['predicted_overhead']:.2%}: {plan['hook_secs_per_full_step'] * 1e3:.2f} ms "
            f"for a step that saves everything, beside {plan['step_secs'] * 1e3:.2f} ms of training",
        ),
    ]
    if plan["max_overhead"] is not None:
        rows.append(
            ("budget", f"{float(plan['max_overhead']):.2%}: steps are left out to keep to it")
        )
    for name, text in rows:
        print(f"{name:10}{text}")
    print()
    _table(
        ("collection", "tensors", "bytes", "when", "saves"),
        [
            (
                c["name"],
                str(c["tensors"]),
                size_text(c["bytes_per_step"]),
                c["when"],
                ", ".join(["values"] * c["saves_values"] + c["reductions"]),
            )
            for c in plan["collections"]
        ],
    )
    print()
    _table(
        ("tensor", "shape", "type", "collections"),
        [
            (
                t["name"],
                "×".join(map(str, t["shape"])) or "number",
                t["dtype"],
                ", ".join(t["collections"]),
            )
            for t in plan["tensors"]
        ],
    )
    for unmatched in plan["unmatched"]:
        close = f" Near it: {', '.join(unmatched['near'])}." if unmatched["near"] else ""
        print(
            f"\nNo tensor matches '{unmatched['pattern']}' of the collection "
            f"'{unmatched['collection']}'.{close}"
        )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        cells = [f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)]
        print("  ".join(cells).rstrip())


def main(words: Sequence[str]) -> int:
    """The command; the exit code. Errors are raised."""
    parser = Parser(prog="smdebug plan", allow_abbrev=False)
    add_options(parser)
    parser.add_argument("--steps", type=positive, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto")
    options, program = parser.split(words)
    plan = make(choice_of(options), program, options.steps)
    if options.json:
        print(json.dumps(plan))
    else:
        show(plan)
    return 0
