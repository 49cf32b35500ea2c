"""Modes and the top of the package."""

from __future__ import annotations

import copy
import enum
import pickle

import pytest
import recorded
import smdebug
from smdebug import modes


def test_modes_are_an_enum_with_the_stored_numbers() -> None:
    assert issubclass(modes, enum.Enum)
    assert [(mode.name, mode.value) for mode in modes] == [
        ("TRAIN", 1),
        ("EVAL", 2),
        ("PREDICT", 3),
        ("GLOBAL", 4),
    ]
    assert modes["EVAL"] is modes.EVAL
    assert modes(3) is modes.PREDICT
    with pytest.raises(KeyError):
        modes["train"]


@pytest.mark.parametrize("mode", list(modes))
def test_modes_pickle_copy_and_hash(mode: modes) -> None:
    assert pickle.loads(pickle.dumps(mode)) is mode
    assert copy.deepcopy({mode: 1}) == {mode: 1}


def test_the_package_names_its_version_and_faces() -> None:
    assert smdebug.__version__.count(".") >= 1
    for name in smdebug.__all__:
        assert hasattr(smdebug, name)


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = """
import sys
import smdebug
heavy = {"numpy", "torch", "tensorflow", "mxnet", "xgboost", "pandas", "boto3", "asyncio", "json", "socket"}
print(sorted(heavy & set(sys.modules)))
"""
    assert recorded.run(code).strip() == "[]"


def test_importing_the_package_does_no_work() -> None:
    code = """
import logging, threading
import smdebug
print(logging.getLogger("smdebug").handlers, threading.active_count())
"""
    assert recorded.run(code).strip() == "[] 1"
