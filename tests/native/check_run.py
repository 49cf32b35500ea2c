"""Checks what a native example recorded, with nothing but the standard library.

Usage: check_run.py first_run|train|minimal DIRECTORY
"""

import json
import math
import struct
import sys
from pathlib import Path


def fields(message):
    """Yields (number, value) of a protocol buffer message."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        wire = key & 7
        if wire == 0:
            value = varint()
        elif wire == 2:
            length = varint()
            value, at = message[at : at + length], at + length
        else:
            length = 8 if wire == 1 else 4
            value, at = message[at : at + length], at + length
        yield key >> 3, value


def only(message, number):
    return next(value for key, value in fields(message) if key == number)


class Run:
    def __init__(self, root):
        self.root = Path(root)
        files = sorted(self.root.glob("index/*/*_worker_0.json"))
        self.index = {int(file.name.split("_")[0]): json.loads(file.read_text()) for file in files}
        collections = self.root / "collections/000000000/worker_0_collections.json"
        self.collections = json.loads(collections.read_text())["collections"]

    def steps(self):
        return list(self.index)

    def names(self, step):
        return [entry["tensorname"] for entry in self.index[step]["tensor_payload"]]

    def tensor(self, step, name):
        """The shape and the values of a tensor of floats."""
        entry = next(e for e in self.index[step]["tensor_payload"] if e["tensorname"] == name)
        data = (self.root / self.index[step]["meta"]["event_file_name"]).read_bytes()
        record = data[entry["start_idx"] : entry["start_idx"] + entry["length"]]
        (length,) = struct.unpack_from("<Q", record)
        assert length + 16 == entry["length"], (length, entry)
        value = only(only(record[12 : 12 + length], 5), 1)
        tensor = only(value, 8)
        shape = [only(dim, 1) for key, dim in fields(only(tensor, 2)) if key == 2]
        content = only(tensor, 4)
        size = {1: "f", 2: "d"}[only(tensor, 1)]
        values = [v for (v,) in struct.iter_unpack("<" + size, content)]
        assert len(values) == math.prod(shape), (shape, len(values))
        return shape, values

    def scalar(self, step, name):
        shape, values = self.tensor(step, "scalar/" + name)
        assert shape == [1], shape
        return values[0]


def check_equal(found, expected):
    assert found == expected, f"found {found}, expected {expected}"


def check_close(found, expected):
    assert len(found) == len(expected), (found, expected)
    for a, b in zip(found, expected):
        assert math.isclose(a, b, rel_tol=1e-5), f"found {found}, expected {expected}"


def check_first_run(run):
    check_equal(run.steps(), list(range(10)))
    for step in run.steps():
        saved = ["weight", "scalar/loss"] if step % 2 == 0 else ["scalar/loss"]
        check_equal(run.names(step), saved)
        check_close([run.scalar(step, "loss")], [0.9 ** (step + 1)])
    shape, values = run.tensor(4, "weight")
    check_equal(shape, [3, 4])
    check_close(values, [0.9**5] * 12)


def check_train(run):
    check_equal(run.steps(), list(range(200)))
    parameters = ["hidden/weight", "hidden/bias", "output/weight", "output/bias"]
    reductions = {
        f"smdebug/reductions/{op}/gradient/{layer}/weight"
        for op in ("min", "max", "l2")
        for layer in ("hidden", "output")
    }
    for step in run.steps():
        check_equal(run.index[step]["meta"]["mode"], "TRAIN")
        check_equal(run.index[step]["meta"]["mode_step"], step)
        if step % 50 == 0:
            expected = {*parameters, "hidden/output", "scalar/loss", *reductions}
            check_equal(set(run.names(step)), expected)
        else:
            check_equal(run.names(step), ["scalar/loss"])
    check_equal(run.tensor(50, "hidden/weight")[0], [8, 2])
    check_equal(run.tensor(50, "output/weight")[0], [1, 8])
    check_equal(run.tensor(50, "hidden/output")[0], [256, 8])
    assert all(-1 <= v <= 1 for v in run.tensor(50, "hidden/output")[1])
    assert run.tensor(0, "hidden/weight") != run.tensor(50, "hidden/weight")
    check_equal(run.tensor(0, "hidden/bias")[1], [0.0] * 8)
    for layer in ("hidden", "output"):
        low, high, norm = (
            run.tensor(100, f"smdebug/reductions/{op}/gradient/{layer}/weight")[1][0]
            for op in ("min", "max", "l2")
        )
        assert low <= high and norm >= max(abs(low), abs(high)) > 0, (low, high, norm)
    losses = [run.scalar(step, "loss") for step in run.steps()]
    assert losses[-1] < 0.3 < losses[0], losses
    check_equal(run.collections["weights"]["tensor_names"], ["hidden/weight", "output/weight"])
    check_equal(run.collections["scalars"]["tensor_names"], ["scalar/loss"])


def check_minimal(run):
    check_equal(run.steps(), list(range(11)))
    for step in run.steps():
        saved = ["layer/weight", "scalar/loss"] if step % 5 == 0 else ["scalar/loss"]
        check_equal(run.names(step), saved)
        check_close([run.scalar(step, "loss")], [91 * 0.81**step])
    shape, values = run.tensor(10, "layer/weight")
    check_equal(shape, [2, 3])
    check_close(values, [v * 0.9**11 for v in range(1, 7)])


def main():
    example, root = sys.argv[1:]
    run = Run(root)
    {"first_run": check_first_run, "train": check_train, "minimal": check_minimal}[example](run)
    assert (run.root / "training_job_end.ts").exists(), "there is no end marker"


if __name__ == "__main__":
    main()
