"""Fixtures of the tests that run both implementations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import s3_server


@pytest.fixture(scope="session")
def server() -> Iterator[s3_server.Server]:
    """A real S3 server for all tests of the session."""
    with s3_server.running() as running:
        yield running


@pytest.fixture
def s3(server: s3_server.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A bucket; the environment of both implementations leads to it."""
    for name, value in s3_server.environment(server.url, tmp_path).items():
        if name != "PYTHONPATH":
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    return server.make_bucket(f"bucket-{tmp_path.name.replace('_', '-')}"[:60])
