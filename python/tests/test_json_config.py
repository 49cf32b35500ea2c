"""Hooks configured by the JSON file of a training job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import smdebug
from conftest import Messages
from smdebug import Hook, ReductionConfig, SaveConfig, SaveConfigMode, modes
from smdebug.exceptions import SMDebugError, SMDebugValueError

# As the documentation prints it, with its trailing comma.
SAMPLE = """
{
  "LocalPath": "%s",
  "HookParameters": {
    "save_all": false,
    "include_regex": "regex1,regex2",
    "save_interval": "100",
    "save_steps": "1,2,3,4",
    "start_step": "1",
    "end_step": "1000000",
    "reductions": "min,max,mean"
  },
  "CollectionConfigurations": [
    {
      "CollectionName": "collection_obj_name1",
      "CollectionParameters": {
        "include_regex": "regexe5*",
        "save_interval": 100,
        "save_steps": "1,2,3",
        "start_step": 1,
        "reductions": "min"
      }
    },
  ]
}
"""


def make(tmp_path: Path, document: dict[str, Any] | str, hook_class: type[Hook] = Hook) -> Hook:
    """A hook made from the document, closed, so that it can be looked at."""
    path = tmp_path / "config.json"
    if isinstance(document, dict):
        document = json.dumps({"LocalPath": str(tmp_path / "run"), **document})
    path.write_text(document)
    hook = hook_class.create_from_json_file(str(path))
    hook.close()
    return hook


def save_configs(hook: Hook, name: str) -> dict[str, dict[str, Any]]:
    config = hook.get_collection(name).save_config
    assert config is not None
    return config.to_json_dict()


def test_the_minimal_sample_makes_a_default_hook(tmp_path: Path) -> None:
    hook = make(tmp_path, '{ "LocalPath": "%s" }' % (tmp_path / "run"))
    assert hook.out_dir == str(tmp_path / "run")
    assert hook.has_default_hook_configuration()
    assert hook.save_config == SaveConfig()
    assert hook.reduction_config == ReductionConfig(save_raw_tensor=True)
    assert smdebug.get_hook() is hook


def test_the_full_sample_is_understood(tmp_path: Path) -> None:
    hook = make(tmp_path, SAMPLE % (tmp_path / "run"))
    assert hook.include_regex == ["regex1", "regex2"]
    assert hook.save_config == SaveConfig(
        save_interval=100, save_steps=[1, 2, 3, 4], start_step=1, end_step=1000000
    )
    assert hook.reduction_config == ReductionConfig(["min", "max", "mean"])
    assert "collection_obj_name1" in hook.include_collections
    listed = hook.get_collection("collection_obj_name1")
    assert listed.include_regex == ["regexe5*"]
    assert listed.reduction_config == ReductionConfig(["min"])
    assert listed.save_config == SaveConfig(
        save_interval=100, save_steps=[1, 2, 3], start_step=1, end_step=1000000
    )


def test_the_path_comes_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "job.json"
    path.write_text(json.dumps({"LocalPath": str(tmp_path / "run")}))
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(path))
    hook = Hook.create_from_json_file()
    assert hook.out_dir == str(tmp_path / "run")
    hook.close()


def test_a_missing_file_is_a_file_not_found_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FileNotFoundError):
        Hook.create_from_json_file(str(tmp_path / "absent.json"))
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(tmp_path / "absent.json"))
    with pytest.raises(FileNotFoundError, match="absent"):
        Hook.create_from_json_file()


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"HookParameters": 3}', "{'a': 1}"])
def test_a_malformed_file_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    with pytest.raises(SMDebugError):
        make(tmp_path, text)


def test_a_collection_needs_a_name(tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match="CollectionName"):
        make(tmp_path, {"CollectionConfigurations": [{"CollectionParameters": {}}]})


PRECEDENCE = [
    # hook, collection, expected TRAIN and EVAL interval of the collection
    ({}, {}, 500, 500),
    ({"save_interval": 10}, {}, 10, 10),
    ({"save_interval": 10, "train.save_interval": 20}, {}, 20, 10),
    ({"save_interval": 10, "train.save_interval": 20}, {"save_interval": 30}, 30, 30),
    ({"train.save_interval": 20}, {"save_interval": 30, "train.save_interval": 40}, 40, 30),
    ({"save_interval": 10}, {"eval.save_interval": 40}, 10, 40),
]


@pytest.mark.parametrize(("hook", "collection", "train", "evaluation"), PRECEDENCE)
def test_the_closest_value_wins(
    tmp_path: Path, hook: dict[str, Any], collection: dict[str, Any], train: int, evaluation: int
) -> None:
    listed = {
        "CollectionName": "mine",
        "CollectionParameters": {"include_regex": "x", **collection},
    }
    made = make(tmp_path, {"HookParameters": hook, "CollectionConfigurations": [listed]})
    configs = save_configs(made, "mine")
    assert configs["TRAIN"]["save_interval"] == train
    assert configs["EVAL"]["save_interval"] == evaluation


@pytest.mark.parametrize("mode", list(modes))
def test_every_mode_has_a_prefix(tmp_path: Path, mode: modes) -> None:
    prefix = mode.name.lower()
    parameters = {
        f"{prefix}.save_interval": "3",
        f"{prefix}.start_step": 4,
        f"{prefix}.end_step": "9",
        f"{prefix}.save_steps": "1, 2",
    }
    config = make(tmp_path, {"HookParameters": parameters}).save_config
    assert config.get_save_config(mode) == SaveConfigMode(3, 4, 9, [1, 2])
    others = [config.get_save_config(other) for other in modes if other is not mode]
    assert others == [SaveConfigMode()] * 3


@pytest.mark.parametrize("word", [True, "True", "true", "1", 1])
def test_booleans_may_be_strings(tmp_path: Path, word: Any) -> None:
    hook = make(
        tmp_path,
        {
            "HookParameters": {"save_all": word, "save_raw_tensor": word, "save_shape": word},
            "CollectionConfigurations": [
                {
                    "CollectionName": "mine",
                    "CollectionParameters": {"include_regex": "x", "save_histogram": word},
                }
            ],
        },
    )
    assert hook.save_all is True
    assert hook.reduction_config == ReductionConfig(save_raw_tensor=True, save_shape=True)
    assert hook.get_collection("mine").save_histogram is True


@pytest.mark.parametrize("word", ["yes", 2, "maybe", []])
def test_other_words_are_no_booleans(tmp_path: Path, word: Any) -> None:
    with pytest.raises(SMDebugValueError, match="save_all"):
        make(tmp_path, {"HookParameters": {"save_all": word}})


def test_lists_may_be_lists_numbers_and_empty_strings(tmp_path: Path) -> None:
    hook = make(
        tmp_path,
        {
            "HookParameters": {
                "save_steps": [1, "2"],
                "include_regex": ["a,b", "c"],
                "reductions": "",
            }
        },
    )
    assert hook.save_config.save_steps == [1, 2]
    assert hook.include_regex == ["a,b", "c"]
    assert hook.reduction_config == ReductionConfig(save_raw_tensor=True)
    hook = make(
        tmp_path / "..",
        {
            "LocalPath": str(tmp_path / "other"),
            "HookParameters": {"save_steps": "", "include_regex": " , "},
        },
    )
    assert hook.save_config == SaveConfig()
    assert hook.include_regex == []


def test_raw_tensors_are_kept_when_no_reduction_is_listed(tmp_path: Path) -> None:
    hook = make(tmp_path, {"HookParameters": {"save_shape": "true"}})
    assert hook.reduction_config == ReductionConfig(save_raw_tensor=True, save_shape=True)
    hook = make(
        tmp_path,
        {
            "LocalPath": str(tmp_path / "2"),
            "HookParameters": {"reductions": "median,l1,abs_l2", "save_raw_tensor": "true"},
        },
    )
    assert hook.reduction_config == ReductionConfig(
        ["median"], None, ["l1"], ["l2"], save_raw_tensor=True
    )


def test_unknown_keys_are_reported_with_the_nearest_one(tmp_path: Path, messages: Messages) -> None:
    make(
        tmp_path,
        {
            "HookParameters": {"save_intervall": 3},
            "CollectionConfigurations": [
                {
                    "CollectionName": "mine",
                    "CollectionParameters": {"include_regx": "a", "include_regex": "b"},
                }
            ],
            "S3OutputPath": "s3://bucket",
        },
    )
    (first,) = messages.containing("'save_intervall'")
    assert "'save_interval'" in first
    (second,) = messages.containing("'include_regx'")
    assert "'include_regex'" in second
    assert not messages.containing("S3OutputPath")


def test_a_collection_listed_twice_adds_its_patterns(tmp_path: Path) -> None:
    listed = [
        {
            "CollectionName": "mine",
            "CollectionParameters": {"include_regex": "a", "save_interval": 3},
        },
        {
            "CollectionName": "mine",
            "CollectionParameters": {"include_regex": "b", "save_interval": 5},
        },
    ]
    hook = make(tmp_path, {"CollectionConfigurations": listed})
    assert hook.get_collection("mine").include_regex == ["a", "b"]
    assert save_configs(hook, "mine")["TRAIN"]["save_interval"] == 5


def test_nulls_are_as_good_as_absent(tmp_path: Path) -> None:
    hook = make(tmp_path, {"HookParameters": None, "CollectionConfigurations": None})
    assert hook.has_default_hook_configuration()


def test_extensions_can_be_configured(tmp_path: Path) -> None:
    hook = make(
        tmp_path,
        {
            "HookParameters": {
                "exclude_regex": "skip",
                "when_nan": "loss,acc",
                "include_regex": "w",
            },
            "CollectionConfigurations": [
                {
                    "CollectionName": "mine",
                    "CollectionParameters": {"include_regex": "a", "exclude_regex": ["b", "c"]},
                }
            ],
        },
    )
    assert hook.save_config.when_nan == ["loss", "acc"]
    assert hook.get_collection("default").exclude_regex == ["skip"]
    assert hook.get_collection("mine").exclude_regex == ["b", "c"]


@pytest.mark.parametrize(
    "parameters",
    [
        {"save_interval": 0},
        {"save_interval": "often"},
        {"save_steps": "1,x"},
        {"end_step": -1},
        {"include_workers": "some"},
        {"reductions": "meen"},
        {"include_regex": "("},
    ],
)
def test_values_that_make_no_sense_are_refused(tmp_path: Path, parameters: dict[str, Any]) -> None:
    with pytest.raises(SMDebugValueError):
        make(tmp_path, {"HookParameters": parameters})


def test_a_hook_class_has_its_own_default_interval(tmp_path: Path) -> None:
    class Often(Hook):
        default_save_interval = 10

    listed = [{"CollectionName": "mine", "CollectionParameters": {"include_regex": "a"}}]
    hook = make(tmp_path, {"CollectionConfigurations": listed}, Often)
    assert isinstance(hook, Often)
    assert hook.save_config == SaveConfig(save_interval=10)
    assert hook.get_collection("mine").save_config == SaveConfig(save_interval=10)
