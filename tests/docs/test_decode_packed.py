"""The plain decoder of the packed layout reads what our reader reads."""

import importlib.util
import math
import shutil
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("smdebug._core")

from smdebug import Hook, ReductionConfig, _core, modes
from smdebug.collection import CollectionManager
from smdebug.trials import create_trial

ROOT = Path(__file__).resolve().parents[2]
DECODER = ROOT / "docs/format/decode_packed.py"
LONGEST = 150

specification = importlib.util.spec_from_file_location("decode_packed", DECODER)
decoder = importlib.util.module_from_spec(specification)
specification.loader.exec_module(decoder)

TYPES = [
    *(np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64),
    *(np.uint8, np.uint16, np.uint32, np.uint64, np.bool_, np.complex64, np.complex128),
    *(ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2),
]


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")


def bits_of(dtype, shape, seed):
    """Any bits at all, so NaN and infinity, too."""
    kind = np.dtype(dtype)
    count = int(np.prod(shape, dtype=int))
    data = np.random.default_rng(seed).integers(0, 256, count * kind.itemsize, np.uint8)
    if kind == np.bool_:
        data &= 1
    return data.view(kind).reshape(shape)


def write(run: Path) -> None:
    """Every element type, strings, shapes, three workers, a second life of one of them."""
    # Worker 0 saves step 4 in its first life, and once more in its second.
    for life, worker, steps in [(0, 0, range(5)), (0, 1, range(5)), (1, 0, range(4, 7))]:
        for step in steps:
            file = _core.StepFile(str(run), step, f"worker_{worker}", "packed")
            mode = modes.EVAL if step % 2 else modes.TRAIN
            for i, dtype in enumerate(TYPES):
                name = np.dtype(dtype).name
                seed = [life, worker, step, i]
                file.tensor(f"raw/{name}", bits_of(dtype, (3, 2, 5), seed), mode, step // 2, 7.5)
                file.tensor(f"one/{name}", bits_of(dtype, (1,), seed), mode, step // 2, 7.5)
                file.tensor(f"scalar/{name}", bits_of(dtype, (), seed), mode, step // 2, 7.5)
            file.tensor("text", np.array(["first", "", "größer"]), mode, step // 2, 7.5)
            file.tensor(f"only/{step}", np.arange(4.0), mode, step // 2, 7.5)
            file.shape("weight", "original/weight", [4, 1, 9], mode, step // 2)
            file.close()
    for worker in range(2):
        manager = CollectionManager(create_default=True)
        manager.num_workers = 2
        manager.export(str(run), f"worker_{worker}_collections.json")


def python_values(array) -> list:
    if array.dtype.kind in "USO":
        return [str(text).encode() for text in array.ravel()]
    if array.dtype.kind == "c":
        return [complex(v) for v in array.ravel()]
    if array.dtype.kind in "biu":
        return [v.item() for v in array.ravel()]
    return [float(v) for v in array.ravel()]


def same(a, b) -> bool:
    if isinstance(a, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    return type(a) is type(b) and (a == b or (a != a and b != b))


def compare(run: Path, steps: dict) -> int:
    """Holds everything that our reader knows against what was decoded; how many values."""
    trial = create_trial(run)
    compared = 0
    expected = set()
    for step in trial.steps(show_incomplete_steps=True):
        for name in trial.tensor_names(step=step):
            tensor = trial.tensor(name)
            for worker in tensor.workers(step):
                expected.add((worker, step))
                found = steps[worker, step]
                assert found["mode"] == trial.mode(step).name
                assert found["mode_step"] == trial.mode_step(step)
                if name in found["shapes"]:
                    assert found["shapes"][name] == list(tensor.shape(step, worker=worker))
                    compared += 1
                    continue
                reductions = tensor.reduction_values(step, worker=worker)
                for (op, absolute), value in reductions.items():
                    key = (name, f"abs_{op}" if absolute else op)
                    assert same(found["numbers"][key], python_values(np.asarray(value))[0])
                    compared += 1
                if (name, None) not in found["numbers"] and name not in found["tensors"]:
                    assert reductions
                    continue
                value = np.asarray(tensor.value(step, worker=worker))
                if (name, None) in found["numbers"]:
                    decoded = [found["numbers"][name, None]]
                else:
                    dtype, shape, decoded = found["tensors"][name]
                    assert shape == list(value.shape)
                    # NumPy has no float8 and no bfloat16: the trial widens them.
                    plain = "float32" if dtype.startswith(("float8", "bfloat")) else dtype
                    assert dtype == "str" or value.dtype.name in (dtype, plain)
                wanted = python_values(value)
                assert len(decoded) == len(wanted)
                assert all(map(same, decoded, wanted)), (name, decoded, wanted)
                compared += len(wanted)
    assert expected == set(steps)
    return compared


def test_every_type_and_worker_reads_the_same(tmp_path):
    write(tmp_path)
    steps = decoder.read_run(tmp_path)
    assert len(steps) == 7 + 5
    assert compare(tmp_path, steps) > 12 * len(TYPES) * 30
    assert all(step["wall_time"] == 7.5 for step in steps.values())


def test_a_hook_reads_the_same(tmp_path):
    hook = Hook(
        tmp_path,
        layout="packed",
        save_all=True,
        save_config={"save_interval": 1},
        reduction_config=ReductionConfig(
            reductions=["mean", "max"], abs_reductions=["min"], norms=["l2"]
        ),
    )
    for step in range(40):
        hook.step()
        hook.save("wide", np.arange(6.0) * step)
        hook.save("whole", np.arange(6) - step)
        hook.save("weight", np.full(3, step, np.float32))
        hook.save_scalar("loss", math.nan if step == 3 else 1 / (step + 1))
    hook.close()
    assert compare(tmp_path, decoder.read_run(tmp_path)) == 40 * 13


def test_without_logs_the_blocks_tell_the_same(tmp_path):
    write(tmp_path)
    before = decoder.read_run(tmp_path)
    logs = sorted((tmp_path / "v2/log").glob("*/*"))
    logs[0].unlink()
    damaged = bytearray(logs[1].read_bytes())
    damaged[len(damaged) // 2] ^= 1
    logs[1].write_bytes(damaged)
    assert repr(decoder.read_run(tmp_path)) == repr(before)
    shutil.rmtree(tmp_path / "v2/log")
    assert repr(decoder.read_run(tmp_path)) == repr(before)


def test_torn_ends_cost_only_what_is_torn(tmp_path):
    hook = Hook(tmp_path / "run", layout="packed", include_regex=".*")
    for step in range(5):
        hook.step()
        hook.save_scalar("loss", float(step))
    hook.close()
    [log] = (tmp_path / "run/v2/log").glob("*/*")
    [segment] = (tmp_path / "run/v2/seg").glob("*/*/*")
    counts = set()
    whole = log.read_bytes()
    for size in range(len(whole), 0, -7):
        log.write_bytes(whole[:size])
        steps = decoder.read_run(tmp_path / "run")
        assert [s["numbers"]["scalar/loss", None] for s in steps.values()] == [
            float(i) for i in range(len(steps))
        ]
        counts.add(len(steps))
    assert counts == set(range(6))
    log.unlink()
    data = segment.read_bytes()
    segment.write_bytes(data[: data.rindex(b"smdebug/block") + 40])
    steps = decoder.read_run(tmp_path / "run")
    assert [step for _, step in steps] == [0, 1, 2, 3]
    assert compare(tmp_path / "run", steps) == 4


def test_damaged_values_are_found(tmp_path):
    write(tmp_path)
    segment = min((tmp_path / "v2/seg").glob("*/*/*"))
    data = bytearray(segment.read_bytes())
    data[data.index("größer".encode())] ^= 1
    segment.write_bytes(data)
    with pytest.raises(ValueError, match="checksum"):
        decoder.read_run(tmp_path)


def test_it_is_short_and_needs_python_alone():
    text = DECODER.read_text(encoding="utf-8")
    assert len(text.splitlines()) < LONGEST
    imported = [
        line.split()[1] for line in text.splitlines() if line.startswith(("import", "from"))
    ]
    assert set(imported) <= sys.stdlib_module_names


def test_tensors_in_parts_are_one(tmp_path):
    many = np.arange(1000, dtype=np.float32)
    file = _core.StepFile(str(tmp_path), 0, "worker_0", "packed", max_record_bytes=1024)
    file.tensor("many", many, modes.TRAIN, 0, 7.5)
    file.close()
    ((_, found),) = decoder.read_run(tmp_path).items()
    assert found["tensors"]["many"] == ("float32", [1000], many.tolist())
