"""The import paths of the original, for tools written for it."""

from __future__ import annotations

import importlib
import json
import os
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import recorded
import smdebug
import writing
from conftest import Messages
from smdebug import Collection, Hook, ReductionConfig, SaveConfig, modes
from smdebug.collection import CollectionManager
from smdebug.core import config_validator, json_config, locations, utils
from smdebug.core.access_layer import utils as access
from smdebug.core.error_handling_agent import BASE_ERROR_MESSAGE, ErrorHandlingAgent
from smdebug.core.reader import FileReader
from smdebug.core.utils import FRAMEWORK, SagemakerSimulator, ScriptSimulator
from smdebug.core.writer import FileWriter
from smdebug.exceptions import (
    IndexReaderException,
    SMDebugError,
    SMDebugNotImplementedError,
    SMDebugRuntimeError,
    SMDebugTypeError,
    SMDebugValueError,
)

PACKAGE = Path(smdebug.__file__).parent
NAMES = {
    "modes": "ModeKeys ALLOWED_MODES str_to_mode_keys",
    "collection": "Collection CollectionKeys SCALAR_COLLECTIONS",
    "collection_manager": "CollectionManager",
    "save_config": "SaveConfig SaveConfigMode DEFAULT_SAVE_CONFIG_INTERVAL",
    "reduction_config": "ReductionConfig ALLOWED_REDUCTIONS ALLOWED_NORMS",
    "reductions": "get_reduction_tensor_name reverse_reduction_tensor_name",
    "writer": "FileWriter",
    "reader": "FileReader",
    "locations": "IndexFileLocationUtils TensorFileLocation TensorboardFileLocation TensorLocation",
    "config_constants": "DEFAULT_WORKER_NAME CLAIM_FILENAME LOG_DUPLICATION_THRESHOLD",
    "json_config": "DEFAULT_SAGEMAKER_OUTDIR DEFAULT_RESOURCE_CONFIG_FILE CONFIG_FILE_PATH_ENV_STR "
    "get_json_config_as_dict collect_hook_config_params get_include_collections "
    "add_collections_to_manager create_hook_from_json_config",
    "access_layer": "TSAccessFile TSAccessS3 has_training_ended training_has_ended check_dir_exists "
    "delete_s3_prefixes ENV_RULE_STOP_SIGNAL_FILENAME DEFAULT_GRACETIME_FOR_RULE_STOP_SEC "
    "is_rule_signalled_gracetime_passed",
    "access_layer.file": "TSAccessFile get_temp_path SMDEBUG_TEMP_PATH_SUFFIX",
    "access_layer.s3": "TSAccessS3",
    "access_layer.utils": "has_training_ended training_has_ended",
    "access_layer.s3handler": "S3Handler ListRequest ReadObjectRequest DeleteRequest",
    "state_store": "StateStore",
    "utils": "error_handling_agent is_first_process FRAMEWORK SagemakerSimulator ScriptSimulator",
    "hook": "BaseHook",
    "singleton_utils": "get_hook set_hook del_hook",
    "hook_utils": "verify_and_get_out_dir get_tensorboard_dir",
    "s3_utils": "list_s3_objects",
    "sagemaker_utils": "is_sagemaker_job",
    "config_validator": "get_config_validator reset_config_validator is_framework_version_supported",
    "error_handling_agent": "ErrorHandlingAgent BASE_ERROR_MESSAGE",
    "logger": "get_logger DuplicateLogFilter",
    "index_reader": "ReadIndexFilesCache IndexReader LocalIndexReader S3IndexReader",
}


@pytest.mark.parametrize("module", NAMES)
def test_the_names_that_tools_import_are_there(module: str) -> None:
    imported = importlib.import_module("smdebug.core." + module)
    for name in NAMES[module].split():
        assert hasattr(imported, name), name
    for name in getattr(imported, "__all__", []):
        assert hasattr(imported, name), name


def test_the_modules_of_trials_give_the_classes_of_the_package() -> None:
    from smdebug import open_trial, trial
    from smdebug.trials import local_trial, s3_trial, utils
    from smdebug.trials import trial as base

    assert base.Trial is trial.Trial
    assert local_trial.LocalTrial is open_trial.LocalTrial
    assert s3_trial.S3Trial is open_trial.S3Trial
    assert utils.create_trial is smdebug.create_trial


def test_nothing_of_ours_imports_the_aliases() -> None:
    importing = re.compile(r"^\s*(from|import) smdebug\.core\b", re.MULTILINE)
    for path in PACKAGE.rglob("*.py"):
        if PACKAGE / "core" not in path.parents:
            assert not importing.search(path.read_text(encoding="utf-8")), path


def test_aliases_are_the_package_s_own_classes() -> None:
    for module, name, own in (
        ("modes", "ModeKeys", modes),
        ("collection", "Collection", Collection),
        ("collection_manager", "CollectionManager", CollectionManager),
        ("save_config", "SaveConfig", SaveConfig),
        ("reduction_config", "ReductionConfig", ReductionConfig),
    ):
        assert getattr(importlib.import_module("smdebug.core." + module), name) is own


def test_median_is_an_allowed_reduction() -> None:
    from smdebug.core.reduction_config import ALLOWED_NORMS, ALLOWED_REDUCTIONS

    assert sorted(ALLOWED_REDUCTIONS) == sorted(
        ["min", "max", "mean", "median", "std", "variance", "sum", "prod"]
    )
    assert ALLOWED_NORMS == ["l1", "l2"]


# ---- files of one step


def test_the_writer_is_a_context_manager_and_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    with FileWriter(str(tmp_path), "worker_0", step=3) as writer:
        writer.write_tensor(np.arange(3), "w", mode=modes.TRAIN, mode_step=1)
        with pytest.raises(SMDebugNotImplementedError, match="index"):
            writer.write_tensor(np.arange(3), "v", write_index=False)
        with pytest.raises(SMDebugValueError, match="mode"):
            writer.write_tensor([1], "x", mode="TRAIN")
        with pytest.raises(SMDebugTypeError):
            writer.write_tensor(None, "x")
    assert recorded.names(tmp_path, 3) == ["w"]
    with pytest.raises(SMDebugValueError, match="'events' or 'tensorboard', not 'pictures'"):
        FileWriter(str(tmp_path), "worker_0", wtype="pictures")
    with (
        FileWriter(str(tmp_path), "worker_0") as writer,
        pytest.raises(SMDebugRuntimeError, match="wtype='tensorboard'"),
    ):
        writer.write_scalar_summary("x", 1, 0)


def test_the_reader_gives_what_the_writer_took(tmp_path: Path) -> None:
    writer = FileWriter(str(tmp_path), "worker_0", step=3)
    writer.write_tensor([1.5], "w", mode=modes.TRAIN, mode_step=1, timestamp=4.0)
    path = writer.name()
    writer.close()
    ((name, step, value, mode, mode_step),) = FileReader(path).read_tensors(check="full")
    assert (name, step, value.tolist(), mode, mode_step) == ("w", 3, [1.5], modes.TRAIN, 1)
    (event,) = FileReader(path).read_events()
    assert (event["timestamp"], event["name"]) == (4.0, "w")


def test_event_file_names_of_devices_survive(tmp_path: Path) -> None:
    device = "/job:worker/replica:0/task:1/device:GPU:0"
    place = locations.TensorFileLocation(7, device)
    again = locations.TensorFileLocation.load_filename(place.get_file_location("/a"))
    assert again is not None
    assert (again.step_num, again.worker_name) == (7, device)
    assert locations.TensorFileLocation.load_filename("000000000007_worker_0.json") is None
    assert locations.TensorFileLocation.get_step_dirs(str(tmp_path)) == []
    assert (
        locations.TensorboardFileLocation(7, "w").get_file_location("/b").startswith("/b/GLOBAL/")
    )
    with pytest.raises(IndexReaderException):
        locations.IndexFileLocationUtils.get_prefix_from_index_file("nonsense")


def test_a_crashed_writer_s_temporary_file_is_not_continued(tmp_path: Path) -> None:
    (tmp_path / "a.json.tmp").write_text("left behind")
    file = access.TSAccessFile(str(tmp_path / "a.json"), "a+")
    file.write("new")
    file.close()
    file.close()
    assert (tmp_path / "a.json").read_text() == "new"
    with pytest.raises(SMDebugError, match="closed"):
        file.write("more")
    with pytest.raises(FileNotFoundError):
        access.TSAccessFile(str(tmp_path / "absent"), "r")


def test_a_file_that_is_too_short_says_so(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    file = access.TSAccessFile(str(tmp_path / "a"), "rb")
    file.ingest_all()
    with pytest.raises(SMDebugError, match="3 bytes"):
        file.read(4)
    file.close()


# ---- the end of a job


def test_a_rule_has_a_grace_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passed = access.is_rule_signalled_gracetime_passed
    assert not passed(str(tmp_path))
    monkeypatch.setenv("SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE", "stop")
    assert not passed(str(tmp_path))
    (tmp_path / "stop").write_text("99999999999")
    assert not passed(str(tmp_path))
    for text in ("1000", "nonsense", ""):
        (tmp_path / "stop").write_text(text)
        assert passed(str(tmp_path))


def test_exactly_one_of_many_is_first(tmp_path: Path) -> None:
    start = threading.Barrier(8)
    firsts: list[bool] = []

    def ask() -> None:
        start.wait(recorded.TIMEOUT_SECS)
        firsts.append(utils.is_first_process(str(tmp_path / "run")))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(recorded.TIMEOUT_SECS)
    assert sorted(firsts) == [False] * 7 + [True]


# ---- JSON


DOCUMENT = {
    "LocalPath": "/o",
    "HookParameters": {"include_regex": "a,b", "save_interval": "100", "train.save_interval": "3"},
    "CollectionConfigurations": [
        {
            "CollectionName": "c1",
            "CollectionParameters": {
                "include_regex": "x*",
                "save_interval": 7,
                "reductions": "min",
                "save_histogram": "false",
            },
        },
        {"CollectionName": "losses"},
    ],
}


def test_the_parts_of_a_document_can_be_asked_for() -> None:
    parameters = json_config.collect_hook_config_params(DOCUMENT)
    assert parameters["out_dir"] == "/o"
    assert parameters["include_regex"] == ["a", "b"]
    assert parameters["save_config_modes"][modes.TRAIN]["save_interval"] == 3
    assert parameters["save_config_modes"][modes.EVAL]["save_interval"] == 100
    assert json_config.get_include_collections(DOCUMENT) == ["c1", "losses"]
    manager = CollectionManager()
    json_config.add_collections_to_manager(manager, DOCUMENT, parameters)
    assert manager.get("c1") == Collection(
        "c1", ["x*"], None, ReductionConfig(["min"]), SaveConfig(save_interval=7), False
    )
    losses = manager.get("losses").save_config
    assert losses is not None
    assert losses.get_save_config(modes.TRAIN).save_interval == 3


def test_an_empty_document_has_defaults() -> None:
    parameters = json_config.collect_hook_config_params({})
    assert parameters["out_dir"] == json_config.DEFAULT_SAGEMAKER_OUTDIR
    assert parameters["include_regex"] is None
    assert parameters["reduction_config"] is None
    assert json_config.get_include_collections({}) is None
    with pytest.raises(SMDebugValueError, match="CollectionName"):
        json_config.get_include_collections({"CollectionConfigurations": [{}]})


def test_a_document_is_found_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config.json"
    path.write_text(
        '{"LocalPath": "%s", "HookParameters": {"save_all": "true",},}' % (tmp_path / "r")
    )
    document = json_config.get_json_config_as_dict(str(path))
    assert document["HookParameters"] == {"save_all": "true"}
    monkeypatch.setenv(json_config.CONFIG_FILE_PATH_ENV_STR, str(path))
    assert json_config.get_json_config_as_dict(None) == document
    hook = json_config.create_hook_from_json_config(Hook, str(path))
    assert hook.save_all
    hook.close()
    path.write_text("[]")
    with pytest.raises(SMDebugValueError, match="object"):
        json_config.get_json_config_as_dict(str(path))
    with pytest.raises(FileNotFoundError):
        json_config.get_json_config_as_dict(str(tmp_path / "absent"))


# ---- switching off


def test_the_agent_switches_off_after_a_failure(messages: Messages) -> None:
    agent = ErrorHandlingAgent()
    calls = []

    @agent.catch_smdebug_errors(default_return_val="default")
    def fail(x: int) -> None:
        calls.append(x)
        raise KeyError("mine")

    @agent.catch_smdebug_errors(default_return_val=lambda x: x * 2)
    def work(x: int) -> int:
        return x

    assert work(3) == 3
    assert fail(1) == "default"
    assert agent.disable_smdebug
    assert fail(2) == "default"
    assert work(3) == 6
    assert calls == [1]
    assert messages.containing(BASE_ERROR_MESSAGE)


def test_the_agent_passes_failures_of_a_configured_hook(out_dir: Path) -> None:
    agent = ErrorHandlingAgent()
    hook = Hook(out_dir, save_all=True)
    agent.set_hook(hook)

    @agent.catch_smdebug_errors()
    def fail() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError):
        fail()
    assert not agent.disable_smdebug
    hook.close()
    assert utils.error_handling_agent is ErrorHandlingAgent.get_error_handling_agent()


def test_the_validator_reads_use_smdebug_once(monkeypatch: pytest.MonkeyPatch) -> None:
    config_validator.reset_config_validator()
    monkeypatch.setenv("USE_SMDEBUG", "no")
    validator = config_validator.get_config_validator(FRAMEWORK.PYTORCH)
    assert config_validator.get_config_validator(FRAMEWORK.MXNET) is validator
    assert not validator.validate_training_job()
    monkeypatch.setenv("USE_SMDEBUG", "yes")
    assert not validator.validate_training_job()
    config_validator.reset_config_validator()
    validator = config_validator.get_config_validator(FRAMEWORK.PYTORCH)
    assert validator.validate_training_job()
    monkeypatch.setattr(config_validator, "is_framework_version_supported", lambda _: False)
    assert not validator.validate_training_job()
    config_validator.reset_config_validator()


def test_an_unknown_framework_is_refused() -> None:
    with pytest.raises(SMDebugNotImplementedError):
        utils.is_framework_version_supported("x")  # type: ignore[arg-type]


def test_the_state_of_a_job_without_checkpoints_cannot_be_kept() -> None:
    from smdebug.core.state_store import StateStore

    store = StateStore()
    assert store.get_last_saved_state() is None
    assert not store.is_checkpoint_updated()
    with pytest.raises(SMDebugRuntimeError):
        store.update_state({})


def test_the_simulators_leave_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(utils, "DEFAULT_SAGEMAKER_TENSORBOARD_PATH", str(tmp_path / "tb.json"))
    monkeypatch.setattr(utils, "DEFAULT_SAGEMAKER_OUTDIR", str(tmp_path / "out"))
    before = dict(os.environ)
    simulator = SagemakerSimulator(
        json_config_path=str(tmp_path / "config.json"), json_file_contents=json.dumps(DOCUMENT)
    )
    with simulator as job:
        assert os.environ["TRAINING_JOB_NAME"] == "sm_job"
        assert json_config.get_json_config_as_dict(None) == DOCUMENT
        assert json_config.get_tensorboard_dir_from_json_config() == job.tensorboard_dir
    assert dict(os.environ) == before
    assert list(tmp_path.iterdir()) == []
    with ScriptSimulator(out_dir=str(tmp_path / "run")) as script:
        Hook(script.out_dir).close()
    assert not (tmp_path / "run").exists()


def test_small_functions_refuse_nonsense(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SMDebugValueError):
        utils.index([1, 3], 2)
    for name in ("foo", "a/foo.json"):
        with pytest.raises(IndexReaderException):
            utils.parse_worker_name_from_file(name)
    with pytest.raises(IndexReaderException):
        utils.get_worker_name_from_collection_file("foo.json")
    monkeypatch.setenv("AWS_REGION", " ")
    assert utils.get_region() is None
    assert utils.get_tb_worker().startswith(f"{os.getpid()}_")
    assert utils.get_node_id().startswith(f"{os.getpid()}-")


@pytest.mark.parametrize("word", ["yes", "", 2, []])
def test_only_truth_values_are_booleans(word: Any) -> None:
    from smdebug.analysis.utils import parse_bool, parse_list_from_str

    with pytest.raises(ValueError, match="True or False"):
        parse_bool(word, True)
    with pytest.raises(SMDebugValueError):
        parse_list_from_str(3)  # type: ignore[arg-type]


# ---- index files


def test_index_files_are_listed_and_read_once(tmp_path: Path) -> None:
    from smdebug.core.index_reader import LocalIndexReader

    for step in (0, 7, 1000):
        writing.step(tmp_path, step)
    reader = LocalIndexReader(str(tmp_path))
    names = [str(tmp_path / f"index/{n // 1000:09d}/{n:012d}_worker_0.json") for n in (0, 7, 1000)]
    assert reader.list_index_files() == names
    assert reader.list_index_files(start_after_key=names[0]) == names[1:]
    assert [Path(p).name[:12] for p in reader.list_event_files()] == [
        "000000000000",
        "000000000007",
        "000000001000",
    ]
    contents, steps, last, workers = reader.read_index_files(None, range_steps=(1, None))
    assert [json.loads(text)["meta"]["mode_step"] for text in contents] == steps == [7, 1000]
    assert (last, workers) == (names[-1], ["worker_0", "worker_0"])
    assert reader.read_index_files(None)[1] == [0]
    assert LocalIndexReader(str(tmp_path / "absent")).list_index_files() == []
    (tmp_path / "index/000000000/nonsense.json").write_text("{}")
    with pytest.raises(IndexReaderException, match="nonsense"):
        reader.read_index_files(None)


def test_steps_beyond_64_bits_are_refused(tmp_path: Path) -> None:
    from smdebug.trials import create_trial

    writing.collections(tmp_path)
    writing.step(tmp_path, 0)
    writing.end(tmp_path)
    trial = create_trial(str(tmp_path))
    for step in (1 << 63, -(1 << 70)):
        with pytest.raises(SMDebugValueError, match=str(step)):
            trial.has_passed_step(step)
