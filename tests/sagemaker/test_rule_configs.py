"""Configurations and actions of rules are those that the SDK's own package describes."""

from __future__ import annotations

import inspect
import json
import subprocess
from typing import Any

import pytest
from container import ROOT
from smdebug.rules import rule_configs
from smdebug.rules.action import Actions

SDK = ROOT / ".venvs/sagemaker/bin/python"
ASKED = """
import inspect, json, smdebug_rulesconfig as sdk
made = {}
for name, thing in vars(sdk).items():
    if inspect.isfunction(thing) and not inspect.signature(thing).parameters:
        made[name] = thing()
actions = sdk.ActionList(sdk.SMS("+491"), sdk.Email("a@b.com")).serialize()
print(json.dumps([made, actions]))
"""


@pytest.fixture(scope="module")
def of_the_sdk() -> Any:
    assert SDK.exists(), "Run tools/venv.sh sagemaker first."
    done = subprocess.run(
        [SDK, "-W", "ignore", "-c", ASKED], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_configuration_is_the_same(of_the_sdk):
    ours = {
        name: made()
        for name, made in vars(rule_configs).items()
        if inspect.isfunction(made) and not name.startswith("_")
    }
    assert len(ours) == 21
    assert ours == of_the_sdk[0]


def test_serialised_actions_are_understood(of_the_sdk, monkeypatch):
    # Only what is read of the text matters here, not the service.
    monkeypatch.setattr("smdebug.rules.action.message_action.aws_client", lambda *_: None)
    first, second = Actions(of_the_sdk[1], "R")._actions
    assert (first._protocol, first._endpoint) == ("sms", "+491")
    assert (second._protocol, second._endpoint) == ("email", "a@b.com")
