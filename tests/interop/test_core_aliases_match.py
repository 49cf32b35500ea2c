"""The import paths of the original give the same answers here as there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import original_view
import pytest
from answers import shown

pytestmark = pytest.mark.skipif(
    not original_view.is_available(), reason="Run tools/venv.sh original first."
)

PACKAGE = original_view.ROOT / "python"
PRELUDE = """
import json, os, sys
import numpy as np
from smdebug.core.modes import ModeKeys
from smdebug.core.locations import *
from smdebug.core import utils, config_constants, hook_utils, index_reader, reductions, modes
from smdebug.core.access_layer import file, utils as access
from smdebug.core.writer import FileWriter
from smdebug.core.reader import FileReader
from smdebug.core.state_store import StateStore
from smdebug.analysis.utils import parse_bool, parse_list_from_str
folder = sys.argv[1]

def plain(value):
    if isinstance(value, np.ndarray):
        return [str(value.dtype), value.tolist()]
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, ModeKeys):
        return value.name
    return value

def tree():
    return sorted(os.path.relpath(os.path.join(root, n), folder)
                  for root, _, names in os.walk(folder) for n in names)

def show(value):
    sys.stderr.write(json.dumps(plain(value)) + chr(10))
"""
SCRIPTS = {
    "index_paths": """
for step in (0, 7, 999, 1000, 123456789):
    show(IndexFileLocationUtils.get_index_prefix_for_step(step))
    show(IndexFileLocationUtils.next_index_prefix_for_step(step))
    for prefix in ("", "x/y", "/a/b/"):
        key = IndexFileLocationUtils.get_index_key_for_step(prefix, step, "worker_0")
        show(key)
        show(IndexFileLocationUtils.parse_step_from_index_file_name(key))
show(IndexFileLocationUtils.get_index_path("x"))
show(IndexFileLocationUtils.get_prefix_from_index_file("a/b/index/000000001/000000001007_worker_0.json"))
show(IndexFileLocationUtils.MAX_INDEX_FILE_NUM_IN_INDEX_PREFIX)
""",
    "event_paths": """
for worker in ("worker_0", "algo-1"):
    at = TensorFileLocation(7, worker)
    show([at.step_num, at.worker_name, at.type])
    show([at.get_filename(), at.get_step_num_str(), at.get_file_location(), at.get_file_location("/a")])
show([TensorFileLocation.get_dir("/a"), TensorFileLocation.get_step_dir_path("/a", 7)])
show(TensorFileLocation.match_regex("nonsense"))
show(TensorboardFileLocation(7, "1_host", ModeKeys.EVAL).get_file_location("/b"))
show(TensorLocation("t", ModeKeys.TRAIN, 3, "events/x", 0, 105, "worker_0").to_dict())
show(TensorShape("t", ModeKeys.TRAIN, 3, (2, 3)).to_dict())
show(vars(TensorShape("t", ModeKeys.TRAIN, 3, (2, 3), "orig")))
""",
    "constants": """
names = [n for n in dir(config_constants) if n.isupper() and not n.startswith("PROFILER")]
show({n: getattr(config_constants, n) for n in names if n != "CLAIM"})
show([modes.ALLOWED_MODE_NAMES, modes.MODE_PLUGIN_NAME, modes.MODE_STEP_PLUGIN_NAME])
show([modes.str_to_mode_keys(n) for n in ("train", "eval", "predict", "global")])
show([file.get_temp_path("/a/b"), access.END_OF_JOB_FILENAME, access.ENV_RULE_STOP_SIGNAL_FILENAME,
      access.DEFAULT_GRACETIME_FOR_RULE_STOP_SEC])
""",
    "text": """
show([utils.is_s3(p) for p in ("s3://b/k/x", "s3://b", "/a", "S3://b/k", "s3:/x")])
show([utils.split("a, b,c,,"), utils.flatten(["a", ["b", ["c"]]])])
show([utils.match_inc("xa", p) for p in (["a"], ["^b"], [], "a")])
show([utils.index([1, 3, 5], 3), utils.merge_two_dicts({"a": 1, "b": 2}, {"b": 3})])
show([utils.load_json_as_dict('{"a": 1}'), utils.load_json_as_dict(None)])
ranges = ((0, 5), (None, 5), (2, None), (None, None), (0, 3), (3, 9))
show([utils.step_in_range(r, 3) for r in ranges])
show([parse_bool(w, True) for w in ("true", "True", "false", "False", None, True, False)])
show([parse_list_from_str(w) for w in ("a,b", "a, b ", "", None, ["x"])])
show(parse_list_from_str("a;b", ";"))
name = reductions.get_reduction_tensor_name
show([name("loss:0", "min", False), name("loss:0", "l1", True), name("loss:0", "l1", True, False)])
show(reductions.reverse_reduction_tensor_name("smdebug/reductions/abs_l1/loss/x"))
""",
    "file_names": """
device = "/job:worker/replica:0/task:1/device:GPU:0"
show([utils.serialize_tf_device(device), utils.deserialize_tf_device(utils.serialize_tf_device(device))])
for path in ("/a/000000000007_worker_0.tfevents", "/a/000000000007_algo-1.json", "a/7_x.csv",
             "/a/index/000000000/000000000499__job-worker_replica-0_task-1_device-GPU-0.json"):
    show(utils.parse_worker_name_from_file(path))
for name in ("worker_0_collections.json", "_job-worker_replica-0_collections.json", "a_collections.ts"):
    show(utils.get_worker_name_from_collection_file("/a/collections/000000000/" + name))
show(utils.get_relative_event_file_path("/a/b/events/000000000007/x.tfevents"))
show([utils.get_path_to_collections("/a"), utils.get_path_to_events_directory("/a")])
""",
    "files": """
show([utils.is_first_process(folder + "/first"), utils.is_first_process(folder + "/first")])
show([utils.is_first_process(folder + "/f/x", is_dir=False), utils.is_first_process("s3://a/b")])
utils.remove_claim_file(folder + "/first")
utils.remove_file_if_exists(folder + "/nothing")
show(utils.is_first_process(folder + "/first"))
utils.ensure_dir(folder + "/q/r/s.txt")
utils.ensure_dir(folder + "/q2/r", is_file=False)
show(sorted(utils.get_immediate_subdirectories(folder)))
for name in ("collections/0/w_collections.json", "collections/0/w_collections.json.tmp"):
    utils.ensure_dir(folder + "/" + name)
    open(folder + "/" + name, "w").close()
found = utils.list_collection_files_in_directory(folder + "/collections")
show([os.path.relpath(p, folder) for p in found])
show(utils.list_files_in_directory(folder + "/nothing"))
writer = file.TSAccessFile(folder + "/t/a.bin", "wb")
show([writer.write(b"hello"), writer.write(b"ab")])
show(tree())
writer.close()
reader = file.TSAccessFile(folder + "/t/a.bin", "rb")
reader.ingest_all()
show([reader.read(4).decode(), reader.has_data(), reader.read(3).decode(), reader.has_data()])
show(tree())
""",
    "end_of_job": """
os.mkdir(folder + "/run")
show([access.has_training_ended(folder + "/run"), access.check_dir_exists(folder + "/run")])
show(hook_utils.verify_and_get_out_dir(folder + "/run") == folder + "/run")
access.training_has_ended(folder + "/run")
show([access.has_training_ended(folder + "/run"), access.check_dir_exists(folder + "/run")])
for arguments in ((None,), (folder + "/run",)):
    try:
        hook_utils.verify_and_get_out_dir(*arguments)
    except RuntimeError as error:
        show(type(error).__name__)
for arguments in ((True, None, "/o"), (False, None, "/o"), (True, "/t", "/o"), (False, "/t", "/o")):
    show(hook_utils.get_tensorboard_dir(*arguments))
show(tree())
""",
    "arrays": """
for value in (3, 3.0, True, "a", [1, 2], (1, 2), np.zeros((2, 2)), np.float32(1), np.array(4)):
    show(utils.make_numpy_array(value))
    show(utils.make_numpy_array(value).shape)
show([utils.size_and_shape(np.zeros((2, 2), "f")), utils.size_and_shape(b"abc")])
show([utils.validate_custom_tensor_value(v, utils.make_numpy_array) for v in ([1], None)])
""",
    "writer_and_reader": """
writer = FileWriter(folder, "worker_0", step=5)
writer.write_tensor(tdata=[1.0, 2.0], tname="a", timestamp=5.0)
show(os.path.relpath(writer.name(), folder))
writer.write_tensor(tdata=np.arange(6, dtype="f4").reshape(2, 3), tname="b", mode=None, timestamp=6.0)
writer.write_tensor(tdata=3, tname="c/d:0", mode=None, mode_step=None, timestamp=7.0)
writer.write_tensor(tdata=["x", "y"], tname="s", timestamp=8.0)
writer.write_shape("z", (1, 2))
writer.flush()
writer.close()
second = FileWriter(folder, "worker_1", step=1007)
second.write_tensor(tdata=True, tname="t", mode=ModeKeys.TRAIN, mode_step=3, timestamp=9.0)
second.write_shape("t", (1,), mode=ModeKeys.TRAIN, mode_step=3, original_name="orig")
second.close()
unindexed = FileWriter(folder, "worker_0", step=6)
unindexed.write_tensor(tdata=[1.0], tname="n", write_index=False, timestamp=1.0)
unindexed.close()
FileWriter(folder, "worker_0", step=9).close()
show(tree())
import re
for path in tree():
    # Our index also holds a checksum of each payload, which the original ignores.
    show(re.sub(rb', "crc32c": [0-9]+', b"", open(os.path.join(folder, path), "rb").read()).hex())
path = folder + "/events/000000000005/000000000005_worker_0.tfevents"
show(list(FileReader(path).read_tensors()))
show(list(FileReader(path).read_events(regex_list=["a", "^c"])))
for arguments in ({"wtype": "zz"}, {}):
    try:
        writer = FileWriter(folder, "w", step=11, **arguments)
        writer.name()
    except Exception as error:
        show(type(error).__name__)
for call in (lambda: FileReader(path, wtype="x"), lambda: list(FileReader(folder + "/no").read_tensors())):
    try:
        call()
    except Exception as error:
        show(type(error).__name__)
""",
    "index_cache": """
cache = index_reader.ReadIndexFilesCache()
show([sorted(cache.lookup_set), cache.cache_limit])
cache.cache_limit = 3
for name in ("a1", "a2", "a3", "a4", "a5", "a6"):
    show(cache.has_not_read(name))
    cache.add(name, "a3")
    show(sorted(cache.lookup_set))
""",
    "state_store": """
os.mkdir(folder + "/cp")
json.dump({"LocalPath": folder + "/cp"}, open(folder + "/config.json", "w"))
show([StateStore().is_checkpoint_updated(), StateStore().get_last_saved_state()])
os.environ["CHECKPOINT_CONFIG_FILE_PATH"] = folder + "/config.json"
store = StateStore()
show([store.get_last_saved_state(), store.is_checkpoint_updated()])
open(folder + "/cp/model.bin", "w").write("x")
show([store.is_checkpoint_updated(), store.is_checkpoint_updated()])
state = {"training-run": 0, "latest-global-step-saved": 14, "latest-global-step-seen": 19,
         "latest-mode-step": {"GLOBAL": 19, "TRAIN": 9}}
store.update_state(state)
store.update_state({**state, "latest-global-step-seen": 25, "latest-global-step-saved": None})
show(json.load(open(folder + "/cp/metadata.json")))
show(StateStore().get_last_saved_state())
""",
}


def answers(python: Path | str, script: str, folder: Path, **variables: str) -> list[Any]:
    """What the script shows in a new folder."""
    folder.mkdir()
    return shown(python, PRELUDE + script, folder, SMDEBUG_LOG_LEVEL="off", **variables)


@pytest.mark.parametrize("name", SCRIPTS)
def test_both_packages_give_the_same_answers(name: str, tmp_path: Path) -> None:
    script = SCRIPTS[name]
    theirs = answers(original_view.PYTHON, script, tmp_path / "theirs", PYTHONPATH="")
    ours = answers(sys.executable, script, tmp_path / "ours", PYTHONPATH=str(PACKAGE))
    assert len(ours) > 1
    assert ours == theirs
