"""Fixtures of the tests on a CUDA device."""

from __future__ import annotations

import pytest
from smdebug.device_arrays import DeviceArrays


@pytest.fixture
def by_devices(monkeypatch) -> list[str]:
    """Names of arrays that were read on a device."""
    taken: list[str] = []
    save = DeviceArrays.save

    def noted(self, pairs, *args):
        left = save(self, pairs, *args)
        taken.extend(name for name, _ in pairs if name not in {name for name, _ in left})
        return left

    monkeypatch.setattr(DeviceArrays, "save", noted)
    return taken
