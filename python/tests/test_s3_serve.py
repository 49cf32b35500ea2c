"""`smdebug serve` and `smdebug report` on runs in object stores."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path

import numpy as np
import pytest
import smdebug
from recorded import TIMEOUT_SECS
from served import PROGRAM, Events, heat_map, serving

STEPS = 4


def make_hook(uri: str, layout: str) -> smdebug.Hook:
    return smdebug.Hook(
        uri,
        save_all=True,
        save_config={"save_interval": 1},
        reduction_config=smdebug.ReductionConfig(norms=["l2"], save_raw_tensor=True),
        layout=layout,
    )


def save_step(hook: smdebug.Hook, number: int) -> None:
    with hook.step():
        for layer in range(3):
            value = np.full((2, 2), layer + number, np.float32)
            hook.save_tensor(f"gradient/layer{layer}", value, "gradients")
        hook.save_scalar("accuracy", number / STEPS)


@pytest.mark.parametrize("layout", ["original", "packed"])
def test_a_run_in_a_bucket_is_served_while_it_grows(s3: str, layout: str) -> None:
    uri = f"s3://{s3}/runs/{layout}"
    with serving(uri) as served, Events(served) as events:
        [run] = served.json("/api/runs")["runs"]
        assert (run["steps"], run["state"]) == (0, "waiting")
        path = f"/api/runs/{run['id']}"
        hook = make_hook(uri, layout)
        for number in range(STEPS):
            save_step(hook, number)
        hook.close()
        news = events.next("run", lambda data: data["state"] == "ended")
        assert (news["id"], news["steps"]) == (run["id"], STEPS)
        block = served.get(f"{path}/heatmap", statistic="l2", role="gradient")
        assert block.status == 200, block.body
        expected = [[2.0 * (layer + number) for number in range(STEPS)] for layer in range(3)]
        np.testing.assert_allclose(heat_map(block.body).channels["mean"], expected)
        [accuracy] = served.json(f"{path}/metrics")["series"]
        assert accuracy["mean"] == [0, 0.25, 0.5, 0.75]
        value = served.get(f"{path}/values.npy", tensor="gradient/layer2", step=3)
        np.testing.assert_array_equal(np.load(io.BytesIO(value.body)), np.full((2, 2), 5.0))
        health = served.json(path)["health"]
        assert health["is_well"], health


def test_a_run_in_a_bucket_becomes_a_report(s3: str, tmp_path: Path) -> None:
    uri = f"s3://{s3}/runs/report"
    hook = make_hook(uri, "packed")
    save_step(hook, 0)
    hook.close()
    file = tmp_path / "report.html"
    subprocess.run([PROGRAM, "report", uri, "--html", file], check=True, timeout=TIMEOUT_SECS)
    assert "gradient/layer2" in file.read_text()


def test_a_bucket_that_is_not_there_is_told(s3: str) -> None:
    done = subprocess.run(
        [PROGRAM, "serve", "--port", "0", f"s3://{s3}-not-there/runs/one"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECS,
        check=False,
    )
    assert done.returncode != 0 and done.stdout == ""
    assert f"There is no bucket '{s3}-not-there'" in done.stderr
