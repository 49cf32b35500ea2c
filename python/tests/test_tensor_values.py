"""What can be saved, and that it comes back as it was."""

from __future__ import annotations

import array
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import recorded
from conftest import Messages
from smdebug import Hook, ReductionConfig, SaveConfig, _core
from smdebug.exceptions import (
    SMDebugError,
    SMDebugRuntimeError,
    SMDebugTypeError,
    SMDebugValueError,
)
from smdebug.trials import create_trial

NUMPY_DTYPES = [
    "bool",
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]
NARROW = ["bfloat16", "float8_e4m3fn", "float8_e5m2"]


def save(out_dir: Path, value: Any, **options: Any) -> _core.EventRecord:
    """The record of the value after a round trip through a run."""
    with Hook(out_dir, save_config=SaveConfig(save_interval=1), **options) as hook:
        hook.step()
        hook.save_tensor("t", value)
    return recorded.tensors(out_dir)["t"]


class Producer:
    """Offers an array through DLPack and nothing else."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3), (2, 1, 3, 2)])
def test_arrays_come_back_as_they_were(out_dir: Path, dtype: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    given = rng.integers(0, 255, (*shape, 16), dtype=np.uint8).view(dtype)[..., 0]
    if dtype == "bool":
        given = rng.integers(0, 2, shape).astype(bool)
    given = np.asarray(given)
    record = save(out_dir, given)
    assert record.dtype == dtype
    assert record.value.dtype == given.dtype
    assert record.value.shape == shape
    assert record.value.tobytes() == given.tobytes()


@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_floats_come_back_exactly(out_dir: Path, dtype: str) -> None:
    """Every bit pattern, as float32, which holds each of them exactly."""
    type_ = np.dtype(getattr(ml_dtypes, dtype))
    bits = np.arange(1 << (8 * type_.itemsize), dtype=f"uint{8 * type_.itemsize}")
    given = bits.view(type_)
    record = save(out_dir, given)
    with np.errstate(invalid="ignore"):
        wide = given.astype(np.float32)
        back = record.value.astype(type_)
    assert record.value.dtype == np.float32
    np.testing.assert_array_equal(record.value, wide)
    finite = ~np.isnan(wide)
    np.testing.assert_array_equal(back.view(bits.dtype)[finite], bits[finite])


@pytest.mark.parametrize("dtype", NARROW)
def test_strided_narrow_floats_are_gathered(out_dir: Path, dtype: str) -> None:
    given = np.arange(12).reshape(3, 4).astype(getattr(ml_dtypes, dtype))[::2, ::-1]
    np.testing.assert_array_equal(save(out_dir, given).value, given.astype(np.float32))


@pytest.mark.parametrize("dtype", ["i2", "u4", "f4", "f8", "c8", "f2"])
def test_foreign_byte_order_is_swapped(out_dir: Path, dtype: str) -> None:
    native = np.arange(6).reshape(2, 3).astype(dtype)
    for given in (
        native.astype(">" + dtype),
        native.astype("<" + dtype),
        native.astype(">" + dtype)[:, ::2],
    ):
        path = out_dir / str(id(given))
        np.testing.assert_array_equal(save(path, given).value, given)
        assert save(path / "x", given).dtype == native.dtype.name


VIEWS = {
    "fortran": lambda a: np.asfortranarray(a),
    "transposed": lambda a: a.T,
    "strided": lambda a: a[::2, 1:],
    "reversed": lambda a: a[::-1, ::-1],
    "broadcast": lambda a: np.broadcast_to(a[0], (4, *a[0].shape)),
    "read_only": lambda a: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape),
    "sliding": lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, axis=1),
    "memoryview": lambda a: memoryview(a),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", ["int8", "float32", "complex128"])
def test_any_layout_is_saved_in_c_order(out_dir: Path, view: str, dtype: str) -> None:
    given = VIEWS[view](np.arange(24).reshape(4, 6).astype(dtype))
    found = save(out_dir, given).value
    np.testing.assert_array_equal(found, np.asarray(given))
    assert found.flags.c_contiguous


@pytest.mark.parametrize("dtype", [d for d in NUMPY_DTYPES if d != "bool"])
def test_dlpack_producers_are_read(out_dir: Path, dtype: str) -> None:
    given = np.arange(12).reshape(3, 4).astype(dtype)
    record = save(out_dir, Producer(given))
    assert record.dtype == dtype
    np.testing.assert_array_equal(record.value, given)
    np.testing.assert_array_equal(save(out_dir / "s", Producer(given[:, ::2])).value, given[:, ::2])


def test_buffers_are_read(out_dir: Path) -> None:
    assert save(out_dir, array.array("d", [1, 2])).value.tolist() == [1, 2]
    assert save(out_dir / "b", bytearray(b"ab")).value.tolist() == [97, 98]


@pytest.mark.parametrize(
    ("given", "dtype", "shape"),
    [
        (3, "int64", (1,)),
        (2.5, "float64", (1,)),
        (True, "bool", (1,)),
        (np.float32(1), "float32", (1,)),
        (np.int8(1), "int8", (1,)),
        (np.bool_(True), "bool", (1,)),
        (1 + 2j, "complex128", (1,)),
        ([1, 2], "int64", (2,)),
        ((1.0, 2), "float64", (2,)),
        ([[1], [2]], "int64", (2, 1)),
        ([np.float32(1), np.float32(2)], "float32", (2,)),
        (range(3), "int64", (3,)),
        (np.array(5), "int64", ()),
    ],
)
def test_numbers_and_lists_are_tensors(
    out_dir: Path, given: Any, dtype: str, shape: tuple[int, ...]
) -> None:
    record = save(out_dir, given)
    assert (record.dtype, record.value.shape) == (dtype, shape)
    np.testing.assert_array_equal(record.value, np.reshape(given, shape))


@pytest.mark.parametrize(
    ("given", "strings", "shape"),
    [
        ("one", ["one"], (1,)),
        (["a", "longer", ""], ["a", "longer", ""], (3,)),
        (np.array(["ü", "日本"]), ["ü", "日本"], (2,)),
        (np.array([b"a", b"bc"]), ["a", "bc"], (2,)),
        (np.array(["x", "y"], dtype=object), ["x", "y"], (2,)),
        ([["a", "b"], ["c", "d"]], ["a", "b", "c", "d"], (2, 2)),
        (b"raw", ["raw"], (1,)),
        (np.array("zero"), ["zero"], (1,)),
        (["emoji 🎉", "nul\0inside"], ["emoji 🎉", "nul\0inside"], (2,)),
    ],
)
def test_strings_come_back_as_they_were(
    out_dir: Path, given: Any, strings: list[str], shape: tuple[int, ...]
) -> None:
    record = save(out_dir, given)
    assert record.dtype == "str"
    assert record.value.ravel().tolist() == strings
    assert record.value.shape == shape


def test_a_tensor_without_elements_has_a_shape_but_no_value(
    out_dir: Path, messages: Messages
) -> None:
    config = ReductionConfig(["min", "sum"], save_raw_tensor=True, save_shape=True)
    hook = Hook(out_dir, save_config=SaveConfig(save_interval=1), reduction_config=config)
    hook.step()
    hook.save_tensor("empty", np.zeros((3, 0, 2), dtype=np.float32))
    hook.save_tensor("full", np.zeros(1))
    hook.close()
    assert "empty" not in recorded.names(out_dir)
    assert ("empty", "empty", (3, 0, 2)) in recorded.index(out_dir, 0)["shapes"]
    assert messages.containing("'empty' has no elements")


@pytest.mark.parametrize(
    "given",
    [
        None,
        {"a": 1},
        object(),
        [object()],
        [[1, 2], [3]],
        np.array([1, "a", None], dtype=object),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.zeros(2, dtype=[("a", "f4"), ("b", "i2")]),
        lambda: 1,
    ],
)
def test_what_is_no_tensor_is_refused_by_name(out_dir: Path, given: Any) -> None:
    hook = Hook(out_dir, save_config=SaveConfig(save_interval=1))
    hook.step()
    with pytest.raises(SMDebugTypeError, match="'bad'"):
        hook.save_tensor("bad", given)
    hook.save_tensor("good", [1])
    hook.close()
    assert recorded.names(out_dir) == ["good"]


def test_bytes_that_are_no_text_are_refused(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=SaveConfig(save_interval=1))
    hook.step()
    with pytest.raises(SMDebugTypeError, match="'bad'"):
        hook.save_tensor("bad", [b"\xff\xfe"])
    with pytest.raises(SMDebugTypeError, match="'bad'"):
        hook.save_tensor("bad", ["\udc80"])
    hook.close()


@pytest.mark.parametrize("name", ["", "a\nb", "a\0b"])
def test_names_that_cannot_be_stored_are_refused(out_dir: Path, name: str) -> None:
    hook = Hook(out_dir, save_config=SaveConfig(save_interval=1))
    hook.step()
    try:
        hook.save_tensor(name, [1])
    except SMDebugValueError:
        stored = []
    else:
        stored = [name]
    hook.close()
    assert [n for step in recorded.steps(out_dir) for n in recorded.names(out_dir, step)] == stored


@pytest.mark.parametrize("name", ["a b", "ü/日本", 'it\'s "quoted"', "loss:0", "a/../b", "x" * 500])
def test_names_are_kept_verbatim(out_dir: Path, name: str) -> None:
    with Hook(out_dir, save_config=SaveConfig(save_interval=1)) as hook:
        hook.step()
        hook.save_tensor(name, [1])
    assert recorded.names(out_dir) == [name]


HUGE = np.broadcast_to(np.float32(1), (1 << 12, 1 << 12, 1 << 10))  # 64 GiB of one number


def test_a_tensor_beyond_the_format_is_refused_with_its_size(
    out_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMDEBUG_STRICT", "1")
    hook = Hook(out_dir, save_config=SaveConfig(save_interval=1))
    hook.step()
    with pytest.raises(SMDebugError, match="'huge'"):
        hook.save_tensor("huge", HUGE)
    hook.save_tensor("small", [1])
    hook.close()
    assert recorded.names(out_dir) == ["small"]


def test_a_tensor_beyond_the_format_does_not_stop_the_training(
    out_dir: Path, messages: Messages
) -> None:
    hook = Hook(out_dir, save_config=SaveConfig(save_interval=1))
    hook.step()
    hook.save_tensor("huge", HUGE)
    hook.save_tensor("small", [1])
    hook.close()
    assert recorded.names(out_dir) == ["small"]
    assert messages.containing("'huge'")


def test_strict_mode_raises_what_the_writer_met(
    out_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMDEBUG_STRICT", "1")
    hook = Hook(out_dir, save_config=SaveConfig(save_interval=1))
    out_dir.parent.joinpath("run").write_text("a file where the directory should be")
    hook.step()
    hook.save_tensor("w", [1])
    with pytest.raises(SMDebugError):
        hook.close()


def test_a_failing_disk_does_not_stop_the_training(out_dir: Path, messages: Messages) -> None:
    hook = Hook(out_dir, save_config=SaveConfig(save_interval=1))
    out_dir.write_text("a file where the directory should be")
    for _ in range(5):
        hook.step()
        hook.save_tensor("w", [1])
    hook.close()
    assert messages.containing(str(out_dir))


def test_strict_must_be_a_truth_value(out_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_STRICT", "perhaps")
    with pytest.raises(SMDebugValueError, match="SMDEBUG_STRICT"):
        Hook(out_dir)


@pytest.mark.parametrize("check", [False, True])
def test_a_large_tensor_of_a_packed_run_belongs_to_its_reader(tmp_path: Path, check: bool) -> None:
    array = np.random.default_rng(0).random((300, 1001))  # larger than what is read at once
    hook = Hook(tmp_path / "run", layout="packed", save_all=True, save_config={"save_interval": 1})
    for step in range(2):
        hook.step()
        hook.save_tensor("small", array[0, :50])
        hook.save_tensor("weight", array + step)
    hook.close()
    [segment] = (tmp_path / "run/v2/seg").glob("*/*/*")
    content = segment.read_bytes()
    trial = create_trial(tmp_path / "run", check=check)
    value = trial.tensor("weight").value(1)
    np.testing.assert_array_equal(value, array + 1)
    assert value.ctypes.data % 64 == 0
    value[:] = 0
    assert segment.read_bytes() == content
    np.testing.assert_array_equal(trial.tensor("weight").value(1), array + 1)
    # It outlives the trial and the file.
    kept = trial.tensor("weight").value(0)
    del trial
    segment.unlink()
    np.testing.assert_array_equal(kept, array)


def test_a_segment_that_lacks_its_end_is_told_of(tmp_path: Path) -> None:
    hook = Hook(tmp_path / "run", layout="packed", save_all=True, save_config={"save_interval": 1})
    hook.step()
    hook.save_tensor("weight", np.zeros((300, 1001)))
    hook.close()
    [segment] = (tmp_path / "run/v2/seg").glob("*/*/*")
    segment.write_bytes(segment.read_bytes()[:1_000_000])
    with pytest.raises(SMDebugRuntimeError, match="ends behind"):
        create_trial(tmp_path / "run").tensor("weight").value(0)
