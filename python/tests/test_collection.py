"""Collections, their manager, and the files they are kept in."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
import smdebug
from smdebug import (
    Collection,
    CollectionKeys,
    Hook,
    ReductionConfig,
    SaveConfig,
    SaveConfigMode,
    modes,
)
from smdebug.collection import CollectionManager
from smdebug.exceptions import SMDebugError, SMDebugTypeError, SMDebugValueError


def test_a_new_collection_holds_nothing() -> None:
    collection = Collection("relu")
    assert collection.name == "relu"
    assert collection.include_regex == []
    assert collection.exclude_regex == []
    assert collection.tensor_names == set()
    assert collection.save_config is None
    assert collection.reduction_config is None
    assert collection.save_histogram is True
    assert not collection.holds("relu")


def test_patterns_accumulate_and_are_found_anywhere() -> None:
    collection = Collection("x", include_regex="relu")
    collection.include("tanh$")
    collection.include(["a", ["b", ("c",)]])
    assert collection.include_regex == ["relu", "tanh$", "a", "b", "c"]
    assert collection.holds("my_relu_1")
    assert not collection.holds("SOFT_1")


def test_a_pattern_assigned_as_a_string_is_one_pattern() -> None:
    collection = Collection("x")
    collection.include_regex = "relu"
    assert collection.include_regex == ["relu"]
    collection.include_regex = None
    assert collection.include_regex == []


@pytest.mark.parametrize("pattern", ["(", "[a", "(?P<x"])
def test_an_invalid_pattern_is_refused_at_once(pattern: str) -> None:
    collection = Collection("x", "ok")
    with pytest.raises(SMDebugValueError):
        collection.include(pattern)
    assert collection.include_regex == ["ok"]


@pytest.mark.parametrize("value", [3, {"a": 1}, [None], [3]])
def test_patterns_of_a_wrong_type_are_refused(value: Any) -> None:
    with pytest.raises(SMDebugTypeError):
        Collection("x").include(value)
    with pytest.raises(SMDebugTypeError):
        Collection("x").exclude(value)


def test_excluded_names_leave_unless_they_are_listed() -> None:
    collection = Collection("x", ["w"], exclude_regex=["bad"])
    assert collection.holds("w_good")
    assert not collection.holds("w_bad")
    collection.add_tensor_name("w_bad")
    assert collection.holds("w_bad")
    collection.exclude("good")
    assert collection.exclude_regex == ["bad", "good"]
    assert not collection.holds("w_good")


def test_tensor_names_is_a_set_whose_changes_take_effect() -> None:
    collection = Collection("x", tensor_names=["a"])
    names = collection.tensor_names
    assert isinstance(names, set)
    names.add("b")
    names.update(["c"], {"d"})
    assert collection.tensor_names == {"a", "b", "c", "d"}
    names.discard("a")
    names.remove("b")
    assert collection.tensor_names == {"c", "d"}
    names |= {"e", "f"}
    names -= {"c"}
    assert collection.tensor_names == {"d", "e", "f"}
    names &= {"d", "e"}
    names ^= {"e", "g"}
    assert collection.tensor_names == names == {"d", "g"}
    names.difference_update(["g"])
    names.symmetric_difference_update(["h"])
    names.intersection_update(["d"])
    assert collection.tensor_names == {"d"}
    assert names.pop() == "d"
    assert collection.tensor_names == set()
    collection.tensor_names.add("z")
    collection.tensor_names.clear()
    assert not collection.has_tensor_name("z")
    with pytest.raises(KeyError):
        names.remove("nothing")


def test_tensor_names_in_place_assignment_takes_effect() -> None:
    collection = Collection("x")
    collection.tensor_names |= {"a", "b"}
    collection.tensor_names -= {"a"}
    assert collection.tensor_names == {"b"}


@pytest.mark.parametrize("given", [["a", "b"], {"a", "b"}, ("a", "b"), frozenset("ab")])
def test_tensor_names_may_be_assigned_from_any_collection(given: Any) -> None:
    collection = Collection("x")
    collection.tensor_names = given
    assert collection.tensor_names == {"a", "b"}
    assert collection.has_tensor_name("a")
    collection.remove_tensor_name("a")
    assert collection.tensor_names == {"b"}
    collection.tensor_names = None
    assert collection.tensor_names == set()


def test_a_set_of_names_pickles_as_a_plain_set() -> None:
    names = pickle.loads(pickle.dumps(Collection("x", tensor_names=["a"]).tensor_names))
    assert names == {"a"}
    assert type(names) is set


def test_configs_are_checked_when_they_are_set() -> None:
    collection = Collection("x")
    for value in (3, {"reductions": "min"}, SaveConfig()):
        with pytest.raises(SMDebugTypeError):
            collection.reduction_config = value
    with pytest.raises(SMDebugTypeError):
        collection.save_config = 3
    collection.reduction_config = ReductionConfig(["min"])
    collection.save_config = {modes.TRAIN: SaveConfigMode(save_interval=3)}
    assert collection.save_config == SaveConfig({modes.TRAIN: SaveConfigMode(save_interval=3)})
    collection.reduction_config = None
    collection.save_config = None
    assert collection == Collection("x")


def test_a_config_stays_the_object_that_was_set() -> None:
    config = SaveConfig()
    collection = Collection("x", save_config=config)
    config.save_interval = 7
    assert collection.save_config.save_interval == 7


def test_equality_is_by_value_and_hash_by_name() -> None:
    one = Collection("x", ["a"], ["b"], ReductionConfig(["min"]), SaveConfig(), False)
    other = Collection("x", ["a"], ["b"], ReductionConfig(["min"]), SaveConfig(), False)
    assert one == other
    assert hash(one) == hash(Collection("x"))
    assert one != Collection("x")
    assert one != Collection("y", ["a"], ["b"], ReductionConfig(["min"]), SaveConfig(), False)
    assert one != 3


def test_round_trips_keep_everything() -> None:
    one = Collection("x", ["a"], ["b"], ReductionConfig(["median"]), SaveConfig(), False, ["no"])
    assert Collection.from_json(one.to_json()) == one
    assert Collection.from_dict(one.to_json_dict()) == one
    assert pickle.loads(pickle.dumps(one)) == one
    assert copy.deepcopy(one) == one
    assert Collection.from_dict({"name": "y", "include_regex": ["a"]}) == Collection("y", ["a"])


def test_collections_can_be_subclassed_and_take_new_attributes() -> None:
    class Mine(Collection):
        def double(self) -> str:
            return self.name * 2

    collection = Mine("x")
    collection.note = "mine"
    assert collection.double() == "xx"
    manager = CollectionManager()
    manager.add(collection)
    assert manager.get("x") is collection
    assert manager.get("x").note == "mine"
    assert isinstance(Mine.from_json(collection.to_json()), Mine)


def test_keys_are_the_lower_case_names() -> None:
    keys = {k: v for k, v in vars(CollectionKeys).items() if k.isupper()}
    assert keys.pop("SEARCHABLE_SCALARS") == "sm_metrics"
    assert len(keys) == 21
    assert all(value == key.lower() for key, value in keys.items())
    assert smdebug.CollectionKeys is CollectionKeys


def test_the_manager_creates_what_is_asked_for() -> None:
    manager = CollectionManager(create_default=True)
    assert list(manager.get_collections()) == ["all", "default"]
    made = manager.get("mine")
    assert manager.get("mine") is made
    assert manager.get_collections()["mine"] is made
    with pytest.raises(SMDebugError, match="absent"):
        manager.get("absent", create=False)


def test_adding_replaces_a_collection_of_the_same_name() -> None:
    manager = CollectionManager({"x": Collection("x")})
    new = Collection("x", ["a"])
    manager.add(new)
    manager.add("y")
    assert manager.get("x") is new
    assert list(manager.collections) == ["x", "y"]
    for wrong in (3, None, {"x": new}):
        with pytest.raises(SMDebugTypeError):
            manager.add(wrong)


def test_managers_compare_by_their_collections() -> None:
    one = CollectionManager({"x": Collection("x", ["a"])})
    other = CollectionManager({"x": Collection("x", ["a"])})
    other.set_num_workers(3)
    assert one == other
    other.get("x").include("b")
    assert one != other


def test_a_manager_survives_its_file(tmp_path: Path) -> None:
    manager = CollectionManager(create_default=True)
    manager.add(
        Collection("x", ["a"], ["b"], ReductionConfig(["median"], norms=["l1"]), SaveConfig())
    )
    manager.set_num_workers(2)
    manager.export(str(tmp_path), "worker_0_collections.json")
    path = tmp_path / "collections/000000000/worker_0_collections.json"
    loaded = CollectionManager.load(str(path))
    assert loaded == manager
    assert loaded.get_num_workers() == 2
    assert type(loaded.get("x")) is Collection
    assert CollectionManager.load_from_string(path.read_text()) == manager
    assert manager.to_json_dict()["_meta"] == {"num_workers": 2}

    class Mine(Collection):
        pass

    assert type(CollectionManager.load(str(path), collection_class=Mine).get("x")) is Mine


def test_a_broken_file_is_refused_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text('{"collections": [')
    with pytest.raises(SMDebugError, match=r"c\.json"):
        CollectionManager.load(str(path))
    with pytest.raises(FileNotFoundError):
        CollectionManager.load(str(tmp_path / "absent"))


def test_end_step_of_one_collection_of_a_hook_disables_only_that_one(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=SaveConfig(save_interval=5))
    before = hook.get_collection("losses").save_config
    hook.get_collection("metrics").save_config.end_step = 0
    assert hook.get_collection("metrics").save_config.end_step == 0
    assert hook.get_collection("losses").save_config.end_step is None
    assert before == SaveConfig(save_interval=5)
    assert hook.save_config == SaveConfig(save_interval=5)
    hook.close()
