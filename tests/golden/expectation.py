"""Collects what a run must contain, from the inputs alone, and checks the files against it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from record_encoding import Stamp, histogram, tensor_record


class Tensor(NamedTuple):
    """A tensor as handed over and as it must be stored."""

    name: str
    given: Any
    stored: np.ndarray
    code: int | None = None
    label: str | None = None
    wall_time: float | None = None


class Shape(NamedTuple):
    """A shape entry of an index file."""

    name: str
    shape: tuple[int, ...]
    original_name: str


def tensor(name: str, value: Any, wall_time: float | None = None) -> Tensor:
    """A tensor stored as NumPy sees it, except that plain scalars get the shape (1)."""
    stored = np.asarray(value)
    if not isinstance(value, np.ndarray) and stored.ndim == 0:
        stored = stored.reshape(1)
    return Tensor(name, value, stored, wall_time=wall_time)


def quantized(name: str, label: str, base: str, code: int) -> Tensor:
    """A structured array of a quantised type, stored as its bytes."""
    plain = np.array([1, 2, 100], dtype=base)
    return Tensor(name, plain.view(np.dtype([(label, base)])), plain, code, label)


def collection(name: str, *patterns: str, **fields: Any) -> dict:
    """A collection as its file describes it, without configuration unless given."""
    plain: dict[str, Any] = {"tensor_names": [], "reduction_config": None, "save_config": None}
    return {
        "name": name,
        "include_regex": list(patterns),
        **plain,
        "save_histogram": True,
        **fields,
    }


def reduction_config(reductions: str = "", raw: bool = False, shape: bool = False) -> dict:
    """A reduction configuration as a collections file describes it."""
    return {"save_raw_tensor": raw, "reductions": reductions, "save_shape": shape}


def save_config_mode(interval: int, **fields: Any) -> dict:
    """The saving plan of one mode as a collections file describes it."""
    plain: dict[str, Any] = {"save_steps": [], "start_step": 0, "end_step": None}
    return {"save_interval": interval, **plain, **fields}


def event_path(step: int, worker: str) -> str:
    """Where an event file lies, relative to the run."""
    return f"events/{step:012d}/{step:012d}_{worker}.tfevents"


def index_path(step: int, worker: str) -> str:
    """Where an index file lies, relative to the run."""
    return f"index/{step // 1000:09d}/{step:012d}_{worker}.json"


@dataclass
class Expectation:
    """The expected content of one run directory."""

    root: Path
    about: str
    wall_time: float
    files: list[dict] = field(default_factory=list)
    tensorboard: list[dict] = field(default_factory=list)
    collections: dict[str, dict] = field(default_factory=dict)
    ended: bool = False

    def step(
        self, stamp: Stamp, worker: str, tensors: list[Tensor], shapes: list[Shape] | None = None
    ) -> None:
        """Adds one index file and, if it has tensors, its event file, and checks both."""
        entries, content = self._entries(stamp, tensors)
        self._check_event(stamp.step, worker, content)
        shape_entries = [
            {"name": s.name, "original_name": s.original_name, "shape": list(s.shape)}
            for s in shapes or []
        ]
        self._check_index(stamp, worker, entries, shape_entries)
        self.files.append(
            {
                "index": index_path(stamp.step, worker),
                "event": event_path(stamp.step, worker) if entries else None,
                "event_sha256": hashlib.sha256(content).hexdigest() if entries else None,
                "step": stamp.step,
                "worker": worker,
                "mode": stamp.mode,
                "mode_step": stamp.mode_step,
                "tensors": entries,
                "shapes": shape_entries,
            }
        )

    def tensorboard_file(self, path: str, records: list[tuple[dict, bytes]]) -> None:
        """Adds one TensorBoard file given as (meaning, bytes) pairs, and checks it."""
        content = b"".join(data for _, data in records)
        _check(self.root / path, content)
        self.tensorboard.append({"path": path, "records": [meaning for meaning, _ in records]})

    def collections_file(self, worker: str, num_workers: int, collections: list[dict]) -> None:
        """Adds one collections file and checks that it says just that, in any order."""
        path = f"collections/000000000/{worker}_collections.json"
        wanted = {
            "collections": {c["name"]: c for c in collections},
            "_meta": {"num_workers": num_workers},
        }
        found = json.loads((self.root / path).read_text())
        if found != wanted:
            raise SystemExit(f"The collections differ.\n found {found}\nwanted {wanted}")
        self.collections[path] = wanted

    def to_json(self) -> dict:
        """The part of expected.json that describes this run."""
        steps = sorted({f["step"] for f in self.files})
        return {
            "about": self.about,
            "ended": self.ended,
            "steps": steps,
            "collections": self.collections,
            "files": self.files,
            "tensorboard": self.tensorboard,
        }

    def _entries(self, stamp: Stamp, tensors: list[Tensor]) -> tuple[list[dict], bytes]:
        entries: list[dict] = []
        content = b""
        for t in tensors:
            wall_time = self.wall_time if t.wall_time is None else t.wall_time
            record = tensor_record(t.name, t.stored, stamp._replace(wall_time=wall_time), t.code)
            strings = t.stored.dtype.kind in "UO"
            value = {"strings": t.stored.tolist()} if strings else {"hex": t.stored.tobytes().hex()}
            entries.append(
                {
                    "name": t.name,
                    "dtype": "string" if strings else t.label or t.stored.dtype.name,
                    "shape": list(t.stored.shape),
                    **value,
                    "wall_time": wall_time,
                    "start": len(content),
                    "length": len(record),
                }
            )
            content += record
        return entries, content

    def _check_event(self, step: int, worker: str, content: bytes) -> None:
        path = self.root / event_path(step, worker)
        if content:
            _check(path, content)
        elif path.exists():
            raise SystemExit(f"An event file exists for a step without tensors: {path}")

    def _check_index(
        self, stamp: Stamp, worker: str, entries: list[dict], shapes: list[dict]
    ) -> None:
        meta: dict[str, Any] = {"mode": stamp.mode, "mode_step": stamp.mode_step}
        if entries:
            meta["event_file_name"] = event_path(stamp.step, worker)
        wanted = {
            "meta": meta,
            "tensor_payload": [
                {"tensorname": e["name"], "start_idx": e["start"], "length": e["length"]}
                for e in entries
            ],
            "shape_payload": [
                {"tensorname": s["name"], "originalname": s["original_name"], "shape": s["shape"]}
                for s in shapes
            ],
        }
        _check(self.root / index_path(stamp.step, worker), json.dumps(wanted).encode())


def histogram_meaning(tag: str, values: np.ndarray, step: int) -> dict:
    """What a histogram record must say."""
    return {"tag": tag, "step": step, "histogram": histogram(values)}


def layout(value: Any, depth: int = 5) -> str:
    """JSON text with line breaks in the outer levels only."""
    if depth == 0 or not isinstance(value, (dict, list)) or not value:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    if isinstance(value, list):
        return "[\n" + ",\n".join(layout(v, depth - 1) for v in value) + "\n]"
    items = (f"{json.dumps(k)}: {layout(v, depth - 1)}" for k, v in sorted(value.items()))
    return "{\n" + ",\n".join(items) + "\n}"


def _check(path: Path, wanted: bytes) -> None:
    found = path.read_bytes()
    if found != wanted:
        at = next(
            (i for i, (a, b) in enumerate(zip(found, wanted, strict=False)) if a != b),
            min(len(found), len(wanted)),
        )
        raise SystemExit(
            f"The file differs from its description at byte {at}: "
            f"{len(found)} bytes found, {len(wanted)} wanted;\n"
            f" found {found[max(0, at - 40) : at + 60]!r}\n"
            f"wanted {wanted[max(0, at - 40) : at + 60]!r}: {path}"
        )
