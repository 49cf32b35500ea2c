"""Writes the worked examples of original-layout.md with the package's own encoder.

    PYTHONPATH=python python docs/format/examples.py            check; exits with 1 when they are old
    PYTHONPATH=python python docs/format/examples.py --write    rewrite them

Needs ml_dtypes for the bfloat16 example.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np
import smdebug
from smdebug import _core

DOCUMENT = Path(__file__).with_name("original-layout.md")
BLOCK = re.compile(r"(<!-- example: (\w+) -->\n```(?:text|json)\n)(?:.*?\n)??(```)", re.DOTALL)
STEP, MODE_STEP, WALL_SECS = 12, 4, 1.7e9

TENSORS = {
    "numbers": ("fc", np.array([[1, 2, 3], [4, 5, 6]], np.float32)),
    "strings": ("label", np.array(["cat", "zebra"])),
    "bfloat16": ("b", np.array([0.5, -3], ml_dtypes.bfloat16)),
}


def hex_dump(data: bytes) -> str:
    """Sixteen bytes a line, with offset and printable characters."""
    lines = []
    for start in range(0, len(data), 16):
        part = data[start : start + 16]
        text = "".join(chr(byte) if 32 < byte < 127 else "." for byte in part)
        lines.append(f"{start:04x}  {part.hex(' '):<47}  {text}")
    return "\n".join(lines)


def step_files(run: Path, tensors: list[tuple[str, np.ndarray]]) -> tuple[bytes, str]:
    """The event and the index file of one step."""
    step = _core.StepFile(str(run), STEP, "worker_0")
    for name, value in tensors:
        step.tensor(name, value, smdebug.modes.TRAIN, MODE_STEP, WALL_SECS)
    step.shape("empty", "empty", [0, 4], smdebug.modes.TRAIN, MODE_STEP)
    step.close()
    event = run / _core.event_file_name(STEP, "worker_0")
    index = run / _core.index_file_name(STEP, "worker_0")
    return event.read_bytes(), index.read_text()


def for_people(text: str) -> str:
    """A JSON document indented, with short objects and lists on one line."""

    def lay_out(value: object, indent: int) -> str:
        flat = json.dumps(value)
        if indent + len(flat) <= 96 or not isinstance(value, dict | list):
            return flat
        inner = " " * (indent + 2)
        if isinstance(value, list):
            parts = [inner + lay_out(item, indent + 2) for item in value]
            return "[\n" + ",\n".join(parts) + "\n" + " " * indent + "]"
        parts = [f"{inner}{json.dumps(k)}: {lay_out(v, indent + 2)}" for k, v in value.items()]
        return "{\n" + ",\n".join(parts) + "\n" + " " * indent + "}"

    return lay_out(json.loads(text), 0)


def collections_json() -> str:
    manager = smdebug.collection.CollectionManager()
    manager.add(
        smdebug.Collection(
            "relu",
            include_regex="relu",
            exclude_regex="_input",
            tensor_names=["relu_output_0"],
            reduction_config=smdebug.ReductionConfig(
                reductions=["min", "median"], norms=["l2"], abs_reductions=["max"], save_shape=True
            ),
            save_config={
                "TRAIN": {"save_interval": 10, "end_step": 100},
                "EVAL": {"save_steps": [3, 7]},
            },
        )
    )
    return for_people(manager.to_json())


def examples() -> dict[str, str]:
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, tensor in TENSORS.items():
            found[name] = hex_dump(step_files(Path(folder) / name, [tensor])[0])
        pair = [TENSORS["numbers"], TENSORS["strings"]]
        found["index"] = for_people(step_files(Path(folder) / "index", pair)[1])
    found["collections"] = collections_json()
    return found


def with_examples(text: str) -> str:
    fresh = examples()
    return BLOCK.sub(lambda match: match[1] + fresh[match[2]] + "\n" + match[3], text)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="rewrite the examples")
    arguments = parser.parse_args()
    old = DOCUMENT.read_text(encoding="utf-8")
    new = with_examples(old)
    if arguments.write:
        DOCUMENT.write_text(new, encoding="utf-8")
    elif new != old:
        print(f"{DOCUMENT.name}: the examples are old; run this script with --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
