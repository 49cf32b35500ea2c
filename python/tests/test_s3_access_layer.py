"""The original's names for S3, against a real server."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
import writing
from smdebug import _core
from smdebug.core import access_layer as access
from smdebug.core import hook_utils
from smdebug.core.access_layer.s3handler import (
    DeleteRequest,
    ListRequest,
    ReadObjectRequest,
    S3Handler,
)
from smdebug.core.index_reader import S3IndexReader
from smdebug.core.s3_utils import list_s3_objects
from smdebug.exceptions import SMDebugError, SMDebugNotImplementedError, SMDebugRuntimeError

KEYS = ["a/1", "a/2", "a/b/3", "c"]


@pytest.fixture
def filled(s3: str) -> str:
    for key in KEYS:
        file = access.TSAccessS3(s3, key)
        assert file.write(b"hello ") == [0, 6]
        assert file.write(key.encode()) == [6, len(key)]
        file.flush()
        file.close()
    return s3


def test_an_object_is_written_at_close_and_read_whole(s3: str) -> None:
    with access.TSAccessS3(s3, "x//y///z", binary=False) as file:
        assert file.key_name == "x/y/z"
        file.write("ünï")
        assert S3Handler.list_prefix(ListRequest(s3)) == []
    file.close()
    reader = access.TSAccessS3(s3, "x/y/z")
    reader.ingest_all()
    assert reader.has_data()
    assert reader.read(3) == "ün".encode()
    with pytest.raises(SMDebugError, match="beyond the 5 bytes"):
        reader.read(3)
    assert reader.read(2) == "ï".encode()
    assert not reader.has_data()
    with pytest.raises(SMDebugNotImplementedError):
        reader.open(s3, "r")


def test_prefixes_are_listed(filled: str) -> None:
    assert S3Handler.list_prefix(ListRequest(filled)) == KEYS
    assert S3Handler.list_prefix(ListRequest(filled, "a/")) == ["a/1", "a/2", "a/b/3"]
    assert S3Handler.list_prefix(ListRequest(filled, "a/", "/")) == ["a/b/", "a/1", "a/2"]
    assert S3Handler.list_prefix(ListRequest(filled, "a/", StartAfter="a/1")) == ["a/2", "a/b/3"]
    lists = S3Handler.list_prefixes([ListRequest(filled, "c"), ListRequest(filled, "nothing")])
    assert lists == [["c"], []]
    assert list_s3_objects(filled, "a/", "a/1") == (["a/2", "a/b/3"], "a/b/3")
    assert list_s3_objects(filled, "a/") == (["a/1", "a/2", "a/b/3"], "a/b/3")
    assert list_s3_objects(filled, "nothing") == ([], None)
    with pytest.raises(TypeError, match="list"):
        S3Handler.list_prefixes(ListRequest(filled))  # type: ignore[arg-type]


def test_objects_are_read_whole_or_in_part(filled: str) -> None:
    path = f"s3://{filled}/a/1"
    assert S3Handler.get_object(ReadObjectRequest(path)) == b"hello a/1"
    assert S3Handler.get_object(ReadObjectRequest(path, 6)) == b"a/1"
    assert S3Handler.get_object(ReadObjectRequest(path, 1, 4)) == b"ello"
    many = [ReadObjectRequest(f"s3://{filled}/{KEYS[i % 4]}", 6, 100) for i in range(150)]
    assert S3Handler.get_objects(many) == [KEYS[i % 4].encode() for i in range(150)]
    with pytest.raises(SMDebugError, match=f"no object: s3://{filled}/nothing"):
        S3Handler.get_object(ReadObjectRequest(f"s3://{filled}/nothing"))
    with pytest.raises(SMDebugError, match="no place in S3"):
        S3Handler.get_object(ReadObjectRequest("local/file"))
    request = ReadObjectRequest(path, 1)
    assert (request.bucket, request.key, request.start, request.length) == (filled, "a/1", 1, None)


def test_a_large_object_is_read_whole(s3: str) -> None:
    content = os.urandom(700_000)
    file = access.TSAccessS3(s3, "large")
    file.write(content)
    file.close()
    assert S3Handler.get_object(ReadObjectRequest(f"s3://{s3}/large")) == content
    assert S3Handler.get_object(ReadObjectRequest(f"s3://{s3}/large", 100)) == content[100:]


def test_prefixes_are_deleted(filled: str) -> None:
    S3Handler.delete_prefix(path=f"s3://{filled}/a/b")
    assert S3Handler.list_prefix(ListRequest(filled)) == ["a/1", "a/2", "c"]
    S3Handler.delete_prefix(delete_request=DeleteRequest(filled, "c"))
    access.delete_s3_prefixes(filled, ["a/1", "nothing"])
    assert S3Handler.list_prefix(ListRequest(filled)) == ["a/2"]
    access.delete_s3_prefixes(filled, "a")
    assert S3Handler.list_prefix(ListRequest(filled)) == []
    with pytest.raises(SMDebugError, match="not both"):
        S3Handler.delete_prefix("s3://x/y", DeleteRequest("x"))
    with pytest.raises(SMDebugError, match="no place in S3"):
        S3Handler.delete_prefix("/local")


def test_the_end_of_a_job_is_a_key_below_its_prefix(s3: str) -> None:
    run = f"s3://{s3}/runs/a"
    assert not access.has_training_ended(run)
    assert hook_utils.verify_and_get_out_dir(run) == run
    access.training_has_ended(run)
    assert S3Handler.list_prefix(ListRequest(s3)) == ["runs/a/training_job_end.ts"]
    assert access.has_training_ended(run)
    assert access.check_dir_exists(run + "/")
    assert not access.check_dir_exists(f"s3://{s3}/runs")
    assert not access.check_dir_exists("s3://no-such-bucket-at-all/runs")
    with pytest.raises(SMDebugRuntimeError, match="finished job"):
        hook_utils.verify_and_get_out_dir(run)


def test_index_files_are_keys(s3: str, tmp_path: Path) -> None:
    writing.collections(tmp_path)
    for step in range(3):
        writing.step(tmp_path, step)
    _core.sync_to(str(tmp_path), _core.Storage.open(f"s3://{s3}/runs/one"))
    reader = S3IndexReader(f"s3://{s3}/runs/one")
    keys = [f"runs/one/index/000000000/{step:012}_worker_0.json" for step in range(3)]
    assert reader.list_index_files() == (keys, keys[-1])
    assert reader.list_index_files(keys[0]) == (keys[1:], keys[-1])
    assert reader.list_index_files(keys[-1]) == ([], keys[-1])
    contents, steps, last, workers = reader.read_index_files(None, (1, None))
    assert (steps, last, workers) == ([1, 2], keys[-1], ["worker_0"] * 2)
    assert all(b"tensor_payload" in content for content in contents)


def test_a_rule_is_stopped_by_an_object(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(access.ENV_RULE_STOP_SIGNAL_FILENAME, "stop")
    run = f"s3://{s3}/run"
    assert not access.is_rule_signalled_gracetime_passed(run)
    for content, passed in ((str(time.time()), False), ("1", True), ("soon", True)):
        with access.TSAccessS3(s3, "run/stop", binary=False) as file:
            file.write(content)
        assert access.is_rule_signalled_gracetime_passed(run) == passed
