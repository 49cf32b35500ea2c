"""Exceptions: their bases, their attributes, and that they survive another process."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest
from smdebug import exceptions, modes
from smdebug.exceptions import SMDebugError, TensorUnavailableForStep

ARGUMENTS: dict[str, dict[str, Any]] = {
    "InvalidCollectionConfiguration": {"c_name": "relu"},
    "StepNotYetAvailable": {"step": 3, "mode": modes.TRAIN},
    "StepUnavailable": {"step": 3, "mode": modes.EVAL},
    "TensorUnavailableForStep": {
        "tname": "w",
        "step": 3,
        "mode": modes.GLOBAL,
        "has_reductions": True,
    },
    "ShapeUnavailableForStep": {"tname": "w", "step": 3, "mode": modes.PREDICT},
    "TensorUnavailable": {"tname": "w"},
    "InvalidWorker": {"worker": "worker_9"},
    "IndexReaderException": {"message": "The index is broken."},
    "NoMoreData": {"step": 9, "mode": modes.TRAIN, "last_step": 7},
    "NoMoreProfilerData": {"timestamp": 12},
    "RuleEvaluationConditionMet": {"rule_name": "Vanish", "step": 3, "end_of_rule": True},
    "InsufficientInformationForRuleInvocation": {"rule_name": "Vanish", "message": "No loss."},
    "TrainingStopRequested": {"rule": "Vanish", "step": 3, "message": "Too small."},
}
PLAIN = {
    "SMDebugError": Exception,
    "SMDebugCustomerError": SMDebugError,
    "SMDebugTypeError": TypeError,
    "SMDebugRuntimeError": RuntimeError,
    "SMDebugNotImplementedError": NotImplementedError,
    "SMDebugFileNotFoundError": FileNotFoundError,
    "SMDebugValueError": ValueError,
    "MissingCollectionFiles": SMDebugError,
}


def test_every_exception_is_tested_here() -> None:
    public = {
        name
        for name, thing in vars(exceptions).items()
        if inspect.isclass(thing) and issubclass(thing, Exception) and not name.startswith("_")
    }
    assert public == set(ARGUMENTS) | set(PLAIN)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_attributes_carry_the_argument_names(name: str) -> None:
    given = ARGUMENTS[name]
    error = getattr(exceptions, name)(**given)
    assert isinstance(error, SMDebugError)
    assert {key: getattr(error, key) for key in given} == given
    for value in given.values():
        if not isinstance(value, bool):
            assert (value.name if isinstance(value, modes) else str(value)) in str(error)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_exceptions_with_attributes_survive_pickling(name: str) -> None:
    error = getattr(exceptions, name)(**ARGUMENTS[name])
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
    assert copy.args == error.args


@pytest.mark.parametrize("name", PLAIN)
def test_plain_exceptions_derive_from_built_ins_and_pickle(name: str) -> None:
    error = getattr(exceptions, name)("What went wrong.")
    assert isinstance(error, PLAIN[name])
    assert isinstance(error, SMDebugError)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy)) == (type(error), "What went wrong.")


def test_a_missing_shape_is_a_missing_tensor() -> None:
    error = exceptions.ShapeUnavailableForStep("w", 3)
    assert isinstance(error, TensorUnavailableForStep)
    assert error.mode == modes.GLOBAL


def test_optional_arguments_have_their_defaults() -> None:
    error = TensorUnavailableForStep("w", 3)
    assert (error.mode, error.has_reductions) == (modes.GLOBAL, False)
    assert "educ" not in str(error)
    assert exceptions.RuleEvaluationConditionMet("r", 1).end_of_rule is False
    assert str(exceptions.MissingCollectionFiles())
