"""Files in S3: the storage backend against a real server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import botocore.session
import pytest
import s3_server as support
from smdebug import _core

CONFORMANCE = support.ROOT / "build/dev/storage_test"
MIB = 1 << 20
ODD_NAMES = [
    "a b",
    "ü/日本 🎉",
    "1+1=2",
    "100%",
    "a&b?c#d",
    "q'uo\"te",
    "tilde~(x)*!",
    "<xml>&amp;",
]


def client(**options: object):
    """Another implementation of the protocol."""
    session = botocore.session.Session()
    endpoint = os.environ["AWS_ENDPOINT_URL"]
    return session.create_client("s3", "us-east-1", endpoint_url=endpoint, **options)


def test_the_backend_keeps_the_contract_of_every_storage(s3: str) -> None:
    assert CONFORMANCE.exists(), "Build the dev preset first."
    done = subprocess.run(
        [str(CONFORMANCE), "--gtest_filter=S3/*"],
        env={**os.environ, "SMD_TEST_S3_URI": f"s3://{s3}/contract"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    listed = subprocess.run(
        [str(CONFORMANCE), "--gtest_list_tests", "--gtest_filter=Local/*"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    wanted = len(re.findall(r"^  \S", listed.stdout, re.MULTILINE))
    assert done.returncode == 0, done.stdout
    assert wanted >= 7
    assert f"[  PASSED  ] {wanted} tests." in done.stdout


def test_odd_names_are_the_same_for_everybody(s3: str) -> None:
    storage = _core.Storage.open(f"s3://{s3}/run")
    for name in ODD_NAMES:
        storage.write(name, name.encode())
    assert sorted(path for path, _ in storage.list()) == sorted(ODD_NAMES)
    assert [path for path, _ in storage.list()] == sorted(ODD_NAMES, key=str.encode)
    other = client()
    for name in ODD_NAMES:
        assert storage.read(name) == name.encode()
        assert storage.size(name) == len(name.encode())
        there = other.get_object(Bucket=s3, Key=f"run/{name}")["Body"].read()
        assert there == name.encode()
        storage.remove(name)
    assert storage.list() == []


def test_many_files_are_listed_page_by_page(s3: str) -> None:
    other = client()
    names = [f"f{number:05}" for number in range(2050)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: other.put_object(Bucket=s3, Key=f"run/{n}", Body=b""), names))
    storage = _core.Storage.open(f"s3://{s3}/run")
    assert [path for path, _ in storage.list()] == names
    assert storage.requests == {"LIST": 3}
    assert [path for path, _ in storage.list("", "f02047")] == ["f02048", "f02049"]
    assert storage.requests == {"LIST": 4}


def test_large_files_go_in_parts_of_bounded_size(s3: str) -> None:
    content = os.urandom(12 * MIB + 5)
    storage = _core.Storage.open(f"s3://{s3}/run", part_bytes=5 * MIB)
    storage.write("large", content)
    assert storage.requests == {"POST": 2, "PUT": 3}
    assert storage.read("large") == content
    assert storage.requests == {"POST": 2, "PUT": 3, "GET": 2}
    assert client().list_multipart_uploads(Bucket=s3).get("Uploads", []) == []
    storage.write("exact", content[: 5 * MIB])
    assert storage.requests["PUT"] == 4
    assert storage.size("exact") == 5 * MIB


def test_reading_costs_one_request(s3: str) -> None:
    writer = _core.Storage.open(f"s3://{s3}/run")
    writer.write("small", b"0123456789")
    writer.write("large", bytes(MIB))
    for action, wanted in (
        (lambda s: s.read("small"), {"GET": 1}),
        (lambda s: s.read_range("large", 1000, 2000), {"GET": 1}),
        (lambda s: s.read("large"), {"GET": 2}),
        (lambda s: s.size("small"), {"HEAD": 1}),
        (lambda s: s.list(), {"LIST": 1}),
    ):
        storage = _core.Storage.open(f"s3://{s3}/run")
        action(storage)
        assert storage.requests == wanted
    assert writer.read_range("small", 8, 100) == b"89"
    assert writer.read_range("small", 100, 5) == b""
    assert writer.requests == {"PUT": 2, "GET": 2}


def test_one_of_many_wins_a_name(s3: str) -> None:
    storages = [_core.Storage.open(f"s3://{s3}/run") for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for name in (f"claim{number}" for number in range(25)):
            tries = [pool.submit(s.put_if_absent, name, b"%d" % i) for i, s in enumerate(storages)]
            won = [i for i, one in enumerate(tries) if one.result()]
            assert len(won) == 1
            assert storages[0].read(name) == b"%d" % won[0]
            assert not storages[0].put_if_absent(name, b"late")


def test_threads_share_a_storage(s3: str) -> None:
    storage = _core.Storage.open(f"s3://{s3}/run")

    def work(number: int) -> bytes:
        storage.write(f"f{number}", str(number).encode())
        return storage.read(f"f{number}")

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(64))) == [str(number).encode() for number in range(64)]


def test_slashes_collapse_and_the_whole_bucket_is_a_place(s3: str) -> None:
    _core.Storage.open(f"s3://{s3}//a///b/").write("x", b"1")
    assert _core.Storage.open(f"s3://{s3}").list() == [("a/b/x", 1)]
    assert _core.Storage.open(f"s3://{s3}/a").list() == [("b/x", 1)]
    assert _core.Storage.open(f"s3://{s3}/a/b").name == f"s3://{s3}/a/b"


def test_a_missing_bucket_is_named(s3: str) -> None:
    from smdebug.exceptions import SMDebugValueError

    storage = _core.Storage.open("s3://no-such-bucket/run")
    for action in (storage.list, lambda: storage.read("x"), lambda: storage.write("x", b"")):
        with pytest.raises(SMDebugValueError, match=r"no bucket 'no-such-bucket'.*aws s3 mb"):
            action()


def test_a_directory_is_synced(s3: str, tmp_path: Path) -> None:
    for path in ("events/1/a.tfevents", "index/0/1_a.json", "training_job_end.ts"):
        file = tmp_path / "run" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(path)
    storage = _core.Storage.open(f"s3://{s3}/run")
    assert _core.sync_to(str(tmp_path / "run"), storage) == (3, 19 + 16 + 19, 0)
    assert _core.sync_to(str(tmp_path / "run"), storage) == (0, 0, 3)
    assert storage.read("index/0/1_a.json") == b"index/0/1_a.json"


def test_a_forked_child_opens_its_own_connections(s3: str) -> None:
    script = f"""
import os
from smdebug import _core
storage = _core.Storage.open("s3://{s3}/run")
storage.write("parent", b"1")
child = os.fork()
if child == 0:
    storage.write("child", b"2")
    os._exit(0 if storage.read("parent") == b"1" else 1)
assert os.waitpid(child, 0)[1] == 0
assert storage.read("child") == b"2"
"""
    subprocess.run([sys.executable, "-c", script], timeout=60, check=True)
