"""ReductionConfig: what is saved of a tensor."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from smdebug import ReductionConfig
from smdebug.exceptions import SMDebugValueError

REDUCTIONS = ["min", "max", "median", "mean", "std", "variance", "sum", "prod"]
NORMS = ["l1", "l2"]


def test_all_documented_names_are_accepted() -> None:
    config = ReductionConfig(REDUCTIONS, REDUCTIONS, NORMS, NORMS)
    assert sorted(config.reductions) == sorted(REDUCTIONS)
    assert sorted(config.abs_reductions) == sorted(REDUCTIONS)
    assert config.norms == NORMS
    assert config.abs_norms == NORMS
    assert config.save_raw_tensor is False
    assert config.save_shape is False


def test_the_documented_example_is_kept() -> None:
    config = ReductionConfig(
        reductions=["std", "variance"], abs_reductions=["mean"], norms=["l1"], save_raw_tensor=True
    )
    assert config.to_json_dict() == {
        "save_raw_tensor": True,
        "reductions": "std,variance,l1_norm,abs_mean",
        "save_shape": False,
    }


def test_a_string_is_a_comma_list() -> None:
    assert ReductionConfig(reductions="min, max") == ReductionConfig(reductions=["min", "max"])
    assert ReductionConfig(reductions="min").reductions == ["min"]


@pytest.mark.parametrize(
    ("parameters", "nearest"),
    [
        ({"reductions": ["meen"]}, "mean"),
        ({"abs_reductions": ["medain"]}, "median"),
        ({"norms": ["L1"]}, "l1"),
        ({"abs_norms": ["l3"]}, "l2"),
    ],
)
def test_an_unknown_name_names_the_nearest_one(parameters: dict[str, Any], nearest: str) -> None:
    with pytest.raises(SMDebugValueError, match=nearest):
        ReductionConfig(**parameters)


@pytest.mark.parametrize(
    "parameters",
    [
        {"reductions": ["l1"]},
        {"norms": ["min"]},
        {"save_raw_tensor": "true"},
        {"save_raw_tensor": 1},
        {"save_shape": None},
    ],
)
def test_values_that_make_no_sense_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(SMDebugValueError):
        ReductionConfig(**parameters)


@pytest.mark.parametrize("value", [3, ["min"], "min"])
def test_from_dict_refuses_what_is_no_dict(value: Any) -> None:
    with pytest.raises(SMDebugValueError):
        ReductionConfig.from_dict(value)


def test_from_dict_of_none_is_none() -> None:
    assert ReductionConfig.from_dict(None) is None


def test_lists_accept_norms_with_and_without_suffix() -> None:
    short = ReductionConfig.from_dict({"reductions": "l1,l2,abs_l1,abs_l2,median,abs_median"})
    full = ReductionConfig.from_dict(
        {"reductions": "l1_norm,l2_norm,abs_l1_norm,abs_l2_norm,median,abs_median"}
    )
    assert short == full
    assert short == ReductionConfig(["median"], ["median"], NORMS, NORMS)


def test_median_is_kept_where_the_original_does_not_look() -> None:
    document = ReductionConfig(["median", "min"], ["median"]).to_json_dict()
    assert document["reductions"] == "min"
    assert document["extra_reductions"] == "median,abs_median"


@pytest.mark.parametrize(
    "config",
    [
        ReductionConfig(),
        ReductionConfig(REDUCTIONS, REDUCTIONS, NORMS, NORMS, True, True),
        ReductionConfig(norms=["l2"], save_shape=True),
    ],
)
def test_round_trips_keep_everything(config: ReductionConfig) -> None:
    assert ReductionConfig.from_json(config.to_json()) == config
    assert ReductionConfig.from_dict(config.to_json_dict()) == config
    assert pickle.loads(pickle.dumps(config)) == config
    assert copy.deepcopy(config) == config


def test_equality_is_by_value() -> None:
    assert ReductionConfig(["min"]) == ReductionConfig(["min"])
    assert ReductionConfig(["min"]) != ReductionConfig(["max"])
    assert ReductionConfig(["min"]) != ReductionConfig(["min"], save_shape=True)
    assert ReductionConfig() != 3


def test_flags_can_be_changed_and_new_attributes_set() -> None:
    config = ReductionConfig()
    config.save_raw_tensor = True
    config.save_shape = True
    config.note = "mine"
    assert config == ReductionConfig(save_raw_tensor=True, save_shape=True)
    with pytest.raises(SMDebugValueError):
        config.save_shape = "yes"
