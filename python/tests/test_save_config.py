"""SaveConfig and SaveConfigMode: which steps are saved."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy as np
import pytest
from smdebug import SaveConfig, SaveConfigMode, modes
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError

EXAMPLES = [
    ({}, [0, 500, 1000]),
    ({"save_interval": 1, "end_step": 4}, [0, 1, 2, 3]),
    ({"save_interval": 100, "end_step": 200}, [0, 100]),
    ({"save_interval": 100, "end_step": 201}, [0, 100, 200]),
    ({"save_interval": 100, "start_step": 150, "end_step": 400}, [200, 300]),
    ({"save_steps": [3, 7]}, [0, 3, 7, 500, 1000]),
    ({"save_interval": 7, "start_step": 3, "end_step": 15}, [7, 14]),
    ({"end_step": 0, "save_steps": [9]}, [9]),
    ({"end_step": 0}, []),
]


def saved(config: SaveConfig, mode: modes = modes.TRAIN, until: int = 1001) -> list[int]:
    return [step for step in range(until) if config.should_save_step(mode, step)]


@pytest.mark.parametrize(("parameters", "expected"), EXAMPLES)
@pytest.mark.parametrize("mode", list(modes))
def test_documented_examples_save_these_steps(
    parameters: dict[str, Any], expected: list[int], mode: modes
) -> None:
    assert saved(SaveConfig(**parameters), mode) == expected


def test_each_mode_has_its_own_steps() -> None:
    config = SaveConfig(
        {
            modes.TRAIN: SaveConfigMode(save_interval=1),
            modes.EVAL: SaveConfigMode(save_interval=2),
            modes.PREDICT: SaveConfigMode(save_interval=3),
            modes.GLOBAL: SaveConfigMode(save_interval=4),
        }
    )
    assert [saved(config, mode, 5) for mode in modes] == [
        [0, 1, 2, 3, 4],
        [0, 2, 4],
        [0, 3],
        [0, 4],
    ]


def test_numbers_may_be_strings_and_numpy_integers() -> None:
    config = SaveConfig(save_interval="10", start_step=np.int64(5), end_step="31")
    assert saved(config) == [10, 20, 30]
    assert config.save_interval == 10


@pytest.mark.parametrize("steps", [(3, 7), range(3, 8, 4), np.array([3, 7]), [7, 3, 3], {3, 7}])
def test_save_steps_may_be_any_collection_of_whole_numbers(steps: Any) -> None:
    assert SaveConfig(save_steps=steps).save_steps == [3, 7]


@pytest.mark.parametrize(
    "parameters",
    [
        {"save_interval": 0},
        {"save_interval": -1},
        {"save_interval": 2.5},
        {"save_interval": True},
        {"save_steps": "1,2"},
        {"save_steps": 3},
        {"save_steps": ["1"]},
        {"save_steps": [1.5]},
        {"save_steps": [-1]},
        {"start_step": -1},
        {"end_step": -1},
        {"save_interval": 2**70},
        {"mode_save_configs": {"TRAIN": SaveConfigMode()}},
        {"mode_save_configs": {modes.TRAIN: 3}},
        {"mode_save_configs": 3},
        {"mode_save_configs": {modes.TRAIN: SaveConfigMode()}, "save_interval": 3},
    ],
)
def test_values_that_make_no_sense_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(SMDebugValueError):
        SaveConfig(**parameters)


def test_a_string_that_is_no_number_is_a_plain_value_error() -> None:
    with pytest.raises(ValueError, match="ten"):
        SaveConfig(save_interval="ten")


def test_modes_that_are_not_given_inherit() -> None:
    config = SaveConfig({modes.TRAIN: SaveConfigMode(save_interval=3)})
    assert config.mode_save_configs[modes.EVAL] is None
    with pytest.raises(SMDebugValueError, match="EVAL"):
        config.get_save_config(modes.EVAL)
    with pytest.raises(SMDebugValueError, match="EVAL"):
        config.should_save_step(modes.EVAL, 0)
    config.merge_default_save_config(SaveConfig(save_interval=7))
    assert saved(config, modes.EVAL, 15) == [0, 7, 14]
    assert saved(config, modes.TRAIN, 7) == [0, 3, 6]


def test_merging_a_partial_default_leaves_plain_defaults() -> None:
    config = SaveConfig({modes.TRAIN: None})
    config.merge_default_save_config(SaveConfig({modes.EVAL: SaveConfigMode(save_interval=2)}))
    assert config.get_save_config(modes.EVAL).save_interval == 2
    assert config.get_save_config(modes.PREDICT) == SaveConfigMode()


def test_the_caller_s_dict_and_configs_stay_as_they_are() -> None:
    mode = SaveConfigMode(save_interval=3)
    given = {modes.TRAIN: mode}
    config = SaveConfig(given)
    config.save_interval = 9
    assert given == {modes.TRAIN: SaveConfigMode(save_interval=3)}
    assert mode.save_interval == 3
    steps = [1, 2]
    config = SaveConfig(save_steps=steps)
    steps.append(3)
    assert config.save_steps == [1, 2]
    SaveConfig().save_steps.append(5)
    assert SaveConfig().save_steps == []


def test_properties_apply_to_all_modes() -> None:
    config = SaveConfig(save_interval=2)
    config.end_step = 0
    assert [saved(config, mode) for mode in modes] == [[], [], [], []]
    config.end_step = None
    config.save_interval = "5"
    config.start_step = 6
    config.save_steps = (1,)
    config.when_nan = "loss, acc"
    assert saved(config, modes.EVAL, 12) == [1, 10]
    assert config.when_nan == ["loss", "acc"]


def test_a_property_with_different_values_per_mode_cannot_be_read() -> None:
    config = SaveConfig({modes.TRAIN: SaveConfigMode(save_interval=3)})
    config.merge_default_save_config(SaveConfig())
    with pytest.raises(SMDebugValueError, match=r"3.*500"):
        _ = config.save_interval
    assert config.end_step is None


def test_a_refused_property_changes_nothing() -> None:
    config = SaveConfig(save_interval=2)
    with pytest.raises(SMDebugValueError):
        config.save_interval = 0
    mode = config.get_save_config(modes.TRAIN)
    with pytest.raises(SMDebugValueError):
        mode.save_steps = [-3]
    assert config == SaveConfig(save_interval=2)


def test_the_config_of_a_mode_can_be_changed_in_place() -> None:
    config = SaveConfig(save_interval=2)
    config.get_save_config(modes.EVAL).save_interval = 3
    assert saved(config, modes.EVAL, 7) == [0, 3, 6]
    assert saved(config, modes.TRAIN, 7) == [0, 2, 4, 6]
    config.set_save_config(modes.EVAL, SaveConfigMode(save_interval=4))
    assert saved(config, modes.EVAL, 7) == [0, 4]


def test_the_config_of_a_mode_outlives_being_replaced() -> None:
    config = SaveConfig(save_steps=range(1000))
    mode = config.get_save_config(modes.TRAIN)
    config.set_save_config(modes.TRAIN, None)
    assert mode.save_steps == list(range(1000))
    assert config.mode_save_configs[modes.TRAIN] is None
    mode = config.get_save_config(modes.EVAL)
    del config
    assert mode.save_steps == list(range(1000))


def test_equality_is_by_value() -> None:
    assert SaveConfig(save_interval=3) == SaveConfig(save_interval=3)
    assert SaveConfig(save_interval=3) != SaveConfig(save_interval=4)
    assert SaveConfig(save_interval=3) != SaveConfig(save_interval=3, when_nan=["x"])
    assert SaveConfigMode(1, 2, 3, [4]) == SaveConfigMode(
        save_interval=1, start_step=2, end_step=3, save_steps=[4]
    )
    assert SaveConfig() != 3
    assert (SaveConfig() == None) is False  # noqa: E711


def test_parse_takes_what_a_hook_takes() -> None:
    config = SaveConfig(save_interval=3)
    assert SaveConfig.parse(config) is config
    assert SaveConfig.parse(None) == SaveConfig()
    assert SaveConfig.parse(SaveConfigMode(save_interval=3)) == config
    assert SaveConfig.parse({"save_interval": 3}) == config
    assert SaveConfig.parse({"save_interval": np.int32(3)}) == config
    assert SaveConfig.parse({}) == SaveConfig()
    by_mode = SaveConfig({modes.TRAIN: SaveConfigMode(save_interval=3)})
    for key in (modes.TRAIN, "TRAIN"):
        for value in ({"save_interval": "3"}, SaveConfigMode(save_interval=3)):
            assert SaveConfig.parse({key: value}) == by_mode


@pytest.mark.parametrize("value", [3, "x", [SaveConfigMode()], ReferenceError])
def test_parse_refuses_other_types(value: Any) -> None:
    with pytest.raises(SMDebugTypeError):
        SaveConfig.parse(value)


@pytest.mark.parametrize(
    "value",
    [
        {"save_interval": 3, "TRAIN": {}},
        {modes.TRAIN: SaveConfigMode(), "end_step": 2},
        {"save_intervall": 3},
        {"train": {}},
        {"TRAIN": {"interval": 3}},
        {"save_interval": 0},
    ],
)
def test_parse_refuses_mixed_and_unknown_keys(value: Any) -> None:
    with pytest.raises(SMDebugValueError):
        SaveConfig.parse(value)


def test_an_unknown_key_names_the_nearest_one() -> None:
    with pytest.raises(SMDebugValueError, match="save_interval"):
        SaveConfig.parse({"save_intervall": 3})


def test_values_that_are_no_json_are_a_type_error() -> None:
    with pytest.raises(SMDebugTypeError, match="object"):
        SaveConfig.parse({"save_interval": object()})


def test_default_values_fill_what_a_mode_does_not_say() -> None:
    config = SaveConfig.from_dict(
        {"TRAIN": {"save_interval": 2}}, {"save_interval": 9, "end_step": 4}
    )
    assert config == SaveConfig({modes.TRAIN: SaveConfigMode(save_interval=2, end_step=4)})
    assert SaveConfigMode.from_dict({"start_step": 1}, {"end_step": 4}) == SaveConfigMode(
        start_step=1, end_step=4
    )
    assert SaveConfig.from_save_config_mode(SaveConfigMode(3)) == SaveConfig(save_interval=3)
    with pytest.raises(SMDebugValueError):
        SaveConfig.from_dict(3)


@pytest.mark.parametrize(
    "config",
    [
        SaveConfig(),
        SaveConfig(save_interval=3, start_step=1, end_step=7, save_steps=[9]),
        SaveConfig({modes.EVAL: SaveConfigMode(end_step=3)}),
        SaveConfig(when_nan=["loss"]),
    ],
)
def test_round_trips_keep_everything(config: SaveConfig) -> None:
    assert SaveConfig.from_json(config.to_json()) == config
    assert SaveConfig.from_dict(config.to_json_dict()) == config
    assert json.loads(config.to_json()) == config.to_json_dict()
    assert pickle.loads(pickle.dumps(config)) == config
    assert copy.deepcopy(config) == config
    assert set(config.to_json_dict()) == {mode.name for mode in modes}


def test_json_has_the_documented_keys() -> None:
    assert SaveConfigMode(1, 2, 3, [4]).to_json_dict() == {
        "save_interval": 1,
        "save_steps": [4],
        "start_step": 2,
        "end_step": 3,
    }


def test_configs_take_new_attributes() -> None:
    for config in (SaveConfig(), SaveConfigMode()):
        config.note = "mine"
        assert config.note == "mine"
