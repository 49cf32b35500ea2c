"""The server against its own description: schemathesis asks what the description allows, and more.

Answers must have the described status, type and content; wrong questions must be refused.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, assume, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("SMDEBUG_PROGRAM", ROOT / "build/dev/smdebug"))
GOLDEN = ROOT / "tests/golden"
RUNS = ("hook", "modes", "running", "types", "workers")
TOKEN = "t0ken"
LONGEST_ADDRESS = 7500
EXAMPLES = int(os.environ.get("SMDEBUG_EXAMPLES", "40"))

schema = schemathesis.openapi.from_path(ROOT / "smd/server/openapi.yaml")
# A stream never ends; python/tests/test_serve.py listens to it.
schema = schema.exclude(path="/api/events")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    process = subprocess.Popen(
        [PROGRAM, "serve", "--json", "--port=0", "--token", TOKEN, *(GOLDEN / run for run in RUNS)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["address"].split("/?")[0]
    finally:
        process.terminate()
        assert process.wait(30) == 0


@schemathesis.hook
def map_path_parameters(
    context: schemathesis.HookContext, path_parameters: dict[str, object] | None
) -> dict[str, object] | None:
    """Mostly runs that are there; others would only ever be told that they are not."""
    if path_parameters and isinstance(path_parameters.get("run"), str):
        text = str(path_parameters["run"])
        if len(text) % 5:
            path_parameters["run"] = RUNS[len(text) % len(RUNS)]
    return path_parameters


@schemathesis.hook
def map_query(
    context: schemathesis.HookContext, query: dict[str, object] | None
) -> dict[str, object] | None:
    """The same for statistics, tensors and the runs of comparisons."""
    choices: dict[str, tuple[str, ...]] = {
        "statistic": ("l2", "mean", "abs_max", "nonfinite", "value", "zero_percent"),
        "tensor": ("reduced/matrix", "losses/loss:0", "scalar/lr", "float32", "w"),
        "a": RUNS,
        "b": RUNS,
    }
    for name, texts in choices.items():
        given = (query or {}).get(name)
        if query and isinstance(given, str) and len(given) % 4:
            query[name] = texts[len(given) % len(texts)]
    return query


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
def test_answers_are_as_described(case: schemathesis.Case, address: str):
    question = case.as_transport_kwargs(base_url=address)
    whole = requests.Request(question["method"], question["url"], params=question.get("params"))
    # Longer addresses get 414, which the checks do not take for a refusal.
    assume(len(whole.prepare().url or "") < LONGEST_ADDRESS)
    case.call_and_validate(
        base_url=address,
        headers={"Authorization": f"Bearer {TOKEN}"},
        # What two parameters must have to do with each other, such as `from` with `to`, no
        # description can say.
        excluded_checks=[positive_data_acceptance],
    )
