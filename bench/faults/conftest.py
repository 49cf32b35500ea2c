"""Recorded runs that the tests of the bench share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from faults.library import Library


@pytest.fixture(scope="package")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """A library that is filled as tests ask for runs."""
    before = dict(os.environ)
    os.environ.update(SMDEBUG_STRICT="1", SMDEBUG_TRAINING_END_DELAY_REFRESH="0")
    yield Library(tmp_path_factory.mktemp("faults"))
    os.environ.clear()
    os.environ.update(before)
