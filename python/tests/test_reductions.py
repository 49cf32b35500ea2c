"""Recorded reductions are what NumPy computes."""

from __future__ import annotations

import math
import tempfile
import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import recorded
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from smdebug import Hook, ReductionConfig, SaveConfig

PREFIX = "smdebug/reductions/"
NAMES = ["min", "max", "median", "mean", "std", "variance", "sum", "prod"]
NORMS = ["l1", "l2"]
ALL = ReductionConfig(NAMES, NAMES, NORMS, NORMS)
FLOATS = [np.float16, np.float32, np.float64]
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
ORACLE = {
    "min": np.min,
    "max": np.max,
    "median": np.median,
    "mean": np.mean,
    "std": np.std,
    "variance": np.var,
    "sum": np.sum,
    "l1": lambda x: np.abs(x).sum(),
    "l2": lambda x: np.sqrt((x * x).sum()),
}


def reduce(value: Any) -> dict[str, np.ndarray]:
    """The recorded reductions by name: "min", "abs_l2"."""
    with tempfile.TemporaryDirectory() as folder:
        out_dir = Path(folder) / "run"
        hook = Hook(out_dir, save_config=SaveConfig(save_interval=1), reduction_config=ALL)
        hook.step()
        hook.save_tensor("t", value)
        hook.close()
        if not recorded.steps(out_dir):
            return {}
        found = recorded.tensors(out_dir)
    return {
        name.removeprefix(PREFIX).removesuffix("/t"): record.value for name, record in found.items()
    }


def product(value: np.ndarray) -> float:
    """The product, however large or small the partial products are."""
    if not np.isfinite(value).all():
        return float(np.prod(value.astype(np.float64)))
    mantissa, exponent = 1.0, 0
    for item in value.ravel().tolist():
        part, power = math.frexp(item)
        mantissa, carry = math.frexp(mantissa * part)
        exponent += power + carry
    try:
        return math.ldexp(mantissa, exponent)
    except OverflowError:
        return math.copysign(math.inf, mantissa)


def expected(value: np.ndarray, name: str) -> float:
    """What NumPy computes with more digits and range than float64 has."""
    wide = value.astype(np.longdouble)
    if name.startswith("abs_"):
        wide = np.abs(wide)
    if name.endswith("prod"):
        return product(wide.astype(np.float64))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return float(ORACLE[name.removeprefix("abs_")](wide))


def check(found: np.ndarray, wanted: float, value: np.ndarray, name: str) -> None:
    assert found.shape == (1,)
    narrow = found.dtype == np.float32
    with np.errstate(over="ignore"):
        wanted = float(np.float32(wanted)) if narrow else wanted
    # Sums of numbers that cancel are as exact as their largest partial sum allows.
    finite = np.abs(value[np.isfinite(value)].astype(np.float64))
    scale = float(finite.max(initial=0)) if name.removeprefix("abs_") not in ("prod",) else 0.0
    power = 2 if name.endswith("variance") else 1
    with np.errstate(over="ignore"):
        tolerance = np.float64(scale) ** power * max(1, value.size) * 1e-15
    if name.endswith("std"):
        tolerance = scale * 1e-7
    np.testing.assert_allclose(
        float(found[0]),
        wanted,
        rtol=1e-6 if narrow else 1e-9,
        atol=min(tolerance, 1e300) + (1e-44 if narrow else 0),
        err_msg=name,
    )


def arrays(dtype: Any, **options: Any) -> st.SearchStrategy[np.ndarray]:
    shapes = hnp.array_shapes(min_dims=0, max_dims=3, max_side=20)
    return hnp.arrays(dtype, shapes, **options)


@pytest.mark.parametrize("dtype", FLOATS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_reductions_of_floats_are_numpy_s(dtype: Any, data: st.DataObject) -> None:
    bound = {np.float16: 1e4, np.float32: 1e18, np.float64: 1e150}[dtype]
    bound = float(dtype(bound))
    value = data.draw(
        arrays(dtype, elements=st.floats(-bound, bound, width=8 * np.dtype(dtype).itemsize))
    )
    found = reduce(value)
    assert len(found) == 20
    for name, number in found.items():
        check(number, expected(value, name), value, name)
        assert number.dtype == (np.float64 if dtype is np.float64 else np.float32)


SPECIAL = [
    [np.nan, 1.0],
    [np.inf, 1.0],
    [-np.inf, np.inf],
    [np.nan, np.inf, -np.inf],
    [0.0, -0.0],
    [-1.0],
    [5e-324, -5e-324],
    [1e308, 1e308],
    [1.0] * 1000 + [np.nan],
]


@pytest.mark.parametrize("numbers", SPECIAL, ids=lambda n: f"{n[:3]}")
@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values_behave_as_in_numpy(numbers: list[float], dtype: Any) -> None:
    with np.errstate(over="ignore"):
        value = np.array(numbers).astype(dtype)
    found = reduce(value)
    assert len(found) == 20
    for name, number in found.items():
        check(number, expected(value, name), value, name)


@pytest.mark.parametrize("dtype", INTEGERS)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_reductions_of_integers_are_numpy_s(dtype: Any, data: st.DataObject) -> None:
    value = data.draw(arrays(dtype))
    found = reduce(value)
    assert len(found) == 20
    signed = np.dtype(dtype).kind == "i"
    exact = [int(x) for x in value.ravel()]
    for name, number in found.items():
        items = [abs(x) for x in exact] if name.startswith("abs_") else exact
        unsigned = not signed or name.startswith("abs_")
        operation = name.removeprefix("abs_")
        if operation in ("min", "max"):
            assert int(number[0]) == (min(items) if operation == "min" else max(items))
            assert number.dtype.itemsize == np.dtype(dtype).itemsize
        elif operation in ("sum", "prod"):
            total = sum(items)
            if operation == "prod":
                total = 1
                for item in items:
                    total *= item
            assert number.dtype == (np.uint64 if unsigned else np.int64)
            assert int(number[0]) % 2**64 == total % 2**64, "it wraps"
        else:
            assert number.dtype == np.float64
            check(number, expected(value, name), value, name)


def test_the_smallest_integer_has_an_absolute_value() -> None:
    found = reduce(np.array([-128, 5], dtype=np.int8))
    assert found["abs_max"].tolist() == [128]
    assert found["abs_sum"].tolist() == [133]
    assert found["min"].tolist() == [-128]


def test_reductions_of_booleans_count() -> None:
    found = reduce(np.array([[True, False], [True, True]]))
    assert {name: found[name].tolist() for name in ("min", "max", "sum", "mean", "median")} == {
        "min": [False],
        "max": [True],
        "sum": [3],
        "mean": [0.75],
        "median": [1.0],
    }
    assert found["min"].dtype == bool


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_numbers_have_norms_and_absolute_reductions(dtype: Any) -> None:
    value = np.array([3 + 4j, -6 + 8j, 0], dtype=dtype)
    found = reduce(value)
    assert set(found) == {"l1", "l2", *(f"abs_{n}" for n in NAMES + NORMS)}
    for name, number in found.items():
        wanted = expected(np.abs(value.astype(np.complex128)), name)
        np.testing.assert_allclose(float(number[0]), wanted, rtol=1e-6)


@pytest.mark.parametrize(
    "dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
)
def test_narrow_floats_are_reduced_as_float32(dtype: Any) -> None:
    value = (np.arange(100, dtype=np.float32) / 8 - 3).astype(dtype)
    found = reduce(value)
    assert len(found) == 20
    for name, number in found.items():
        assert number.dtype == np.float32
        if not name.endswith("prod"):
            check(number, expected(value.astype(np.float32), name), value.astype(np.float32), name)


@pytest.mark.parametrize("layout", ["strided", "transposed", "swapped", "broadcast"])
def test_layout_does_not_matter(layout: str) -> None:
    base = np.random.default_rng(2).standard_normal((13, 17)).astype(np.float32)
    value = {
        "strided": base[::3, ::-2],
        "transposed": base.T,
        "swapped": base.astype(">f4"),
        "broadcast": np.broadcast_to(base[0], (5, 17)),
    }[layout]
    plain = reduce(np.ascontiguousarray(value).astype("=f4"))
    found = reduce(value)
    for name, number in found.items():
        np.testing.assert_allclose(number, plain[name], rtol=1e-6, err_msg=name)


def test_norms_of_matrices_are_those_of_their_elements() -> None:
    found = reduce(np.array([[1.0, -2.0], [3.0, -4.0]]))
    assert found["l1"].tolist() == [10]
    np.testing.assert_allclose(found["l2"], [30**0.5])


def test_half_precision_sums_do_not_overflow() -> None:
    found = reduce(np.full(100, 60000, dtype=np.float16))
    np.testing.assert_allclose(
        found["sum"], [5_999_616 if np.float16(60000) != 60000 else 6e6], rtol=1e-6
    )
    assert np.isfinite(found["l2"]).all()


def test_nothing_is_recorded_of_strings_and_empty_tensors() -> None:
    assert reduce(["a", "b"]) == {}
    assert reduce(np.zeros((0, 3))) == {}
