"""`smdebug serve` over real HTTP: every question, live updates, and everything that can go wrong."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import smdebug
from recorded import TIMEOUT_SECS, start
from served import PROGRAM, Events, Served, heat_map, serving

GOLDEN = Path(__file__).resolve().parents[2] / "tests/golden"
STEPS = 6
HOSTILE = [
    "<script>alert(1)</script>",
    '"onmouseover="x',
    "ein/Gewicht.ä.名前.🔥",
    "a&b=c?d#e%20+f",
    "..//../etc/passwd",
    "very.long." + "x" * 6000,
    "\u202ereversed",
    " leading and trailing ",
]


def record(out_dir: Path, steps: int = STEPS, scale: float = 1.0, **options: Any) -> None:
    """Weights, gradients, outputs and losses of a small model, with a NaN in the last gradient."""
    reductions = smdebug.ReductionConfig(
        reductions=["mean", "min", "max"],
        abs_reductions=["max"],
        norms=["l2"],
        save_raw_tensor=True,
    )
    with smdebug.Hook(
        out_dir=str(out_dir),
        save_config=smdebug.SaveConfig(save_interval=1),
        reduction_config=reductions,
        save_all=True,
        **options,
    ) as hook:
        hook.get_collection("weights").include(r"^[a-z0-9.]+\.weight$")
        hook.get_collection("gradients").include("^gradient/")
        hook.get_collection("losses").include("^loss$")
        for step in range(steps):
            hook.set_mode(smdebug.modes.EVAL if step % 3 == 2 else smdebug.modes.TRAIN)
            hook.step()
            for layer in (0, 1, 10):
                weight = np.full((4, 3), layer + step * scale, np.float32)
                hook.save_tensor(f"net.{layer}.weight", weight)
                hook.save_tensor(f"net.{layer}_output_0", weight.sum(axis=1))
            for layer in (10, 1, 0):
                gradient = np.full((4, 3), 0.5 * scale, np.float32)
                if layer == 10 and step == steps - 1:
                    gradient[0, 0] = np.nan
                hook.save_tensor(f"gradient/net.{layer}.weight", gradient)
            hook.save_tensor("loss", np.float64(1 / (step + 1)))


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out_dir = tmp_path_factory.mktemp("served") / "first"
    record(out_dir)
    return out_dir


@pytest.fixture(scope="module")
def served(run_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    second = run_dir.parent / "second"
    record(second, scale=2.0)
    with serving(run_dir, second) as server:
        yield server


def ids(served: Served, run: str = "first") -> dict[str, int]:
    return {t["name"]: t["id"] for t in served.json(f"/api/runs/{run}/tensors")["tensors"]}


# --- every question


def test_the_server_says_what_it_is(served: Served):
    about = served.json("/api")
    assert about["program"] == "smdebug"
    assert about["version"] == smdebug.__version__
    assert about["runs"] == 2
    assert about["pid"] == served.process.pid


def test_runs_are_listed_with_their_state(served: Served, run_dir: Path):
    runs = served.json("/api/runs")["runs"]
    assert [run["id"] for run in runs] == ["first", "second"]
    assert runs[0]["state"] == "ended"
    assert runs[0]["steps"] == STEPS
    assert runs[0]["last_step"] == STEPS - 1
    assert runs[0]["path"] == str(run_dir)


def test_facts_tell_of_collections_files_and_statistics(served: Served):
    facts = served.json("/api/runs/first")
    assert facts["layout"] == "original"
    assert [(m["mode"], m["steps"]) for m in facts["modes"]] == [("TRAIN", 4), ("EVAL", 2)]
    assert facts["worker_names"] == ["worker_0"]
    assert facts["health"]["is_well"] is True
    assert facts["files"]["event_files"] == STEPS
    statistics = {s["name"]: s for s in facts["statistics"]}
    assert statistics["l2"]["is_stored"] and statistics["l2"]["suits_log"]
    assert not statistics["update_ratio"]["is_stored"]
    assert {"nonfinite", "gradient_ratio", "zero_percent"} <= statistics.keys()
    weights = next(c for c in facts["collections"] if c["name"] == "weights")
    assert weights["tensors"] == 3
    assert facts["configuration"][0]["content"]["collections"]["weights"]


def test_facts_tell_what_recording_cost(out_dir: Path):
    with smdebug.Hook(out_dir=str(out_dir), save_all=True) as hook:
        hook.step()
        hook.save_tensor("w", np.ones(3, np.float32))
        hook.end_step()
    told = json.loads((out_dir / "overhead/worker_0.json").read_text())
    assert told["worker"] == "worker_0"
    assert told.keys() - {"worker"} == hook.bill().keys()
    assert (told["saved_steps"], told["tensors"]) == (1, 1)
    (out_dir / "overhead/worker_1.json").write_text('{"worker": "worker_1"}')
    (out_dir / "overhead/worker_2.json").write_text("no JSON")
    with serving(out_dir) as served:
        assert served.json("/api/runs/run")["bill"] == [told]


def test_tensors_stand_in_the_order_of_the_model(served: Served):
    catalogue = served.json("/api/runs/first/tensors")
    names = [t["name"] for t in catalogue["tensors"]]
    assert names == [
        "loss",
        "net.0.weight",
        "net.0_output_0",
        "gradient/net.0.weight",
        "net.1.weight",
        "net.1_output_0",
        "gradient/net.1.weight",
        "net.10.weight",
        "net.10_output_0",
        "gradient/net.10.weight",
    ]
    weight = catalogue["tensors"][1]
    assert weight["role"] == "weight"
    assert (weight["dtype"], weight["shape"]) == ("float32", [4, 3])
    assert {"mean", "min", "max", "abs_max", "l2"} <= set(weight["statistics"])
    modules = {m["path"]: m for m in catalogue["modules"]}
    assert modules["net"]["count"] == 9
    assert modules["net.10"]["first"] == 7
    assert catalogue["modules"][modules["net.10"]["parent"]]["path"] == "net"
    assert catalogue["modules"][weight["module"]]["path"] == "net.0"


def test_steps_have_their_times(served: Served):
    steps = served.json("/api/runs/first/steps", mode="EVAL")
    assert steps["step"] == [0, 1]
    assert steps["global_step"] == [2, 5]
    assert all(secs > 1e9 for secs in steps["wall_secs"])
    assert steps["complete"] == [True, True]


def test_a_heat_map_holds_a_statistic_of_all_tensors(served: Served):
    block = served.get(
        "/api/runs/first/heatmap", statistic="max", role="weight", channels="mean,min,max"
    )
    assert block.headers["content-type"] == "application/octet-stream"
    grid = heat_map(block.body)
    known = ids(served)
    assert list(grid.ids) == [known[f"net.{layer}.weight"] for layer in (0, 1, 10)]
    wanted = [[layer + step for step in range(STEPS)] for layer in (0, 1, 10)]
    for channel in ("mean", "min", "max"):
        np.testing.assert_array_equal(grid.channels[channel], wanted)
    assert grid.flags == 3
    assert list(grid.first) == list(grid.last) == list(range(STEPS))
    assert grid.extent == (0, 15, 1)


def test_zooming_out_puts_neighbours_together(served: Served):
    grid = heat_map(
        served.get(
            "/api/runs/first/heatmap",
            statistic="max",
            role="weight",
            rows=2,
            columns=2,
            channels="mean,min,max",
        ).body
    )
    assert (grid.rows, grid.columns, grid.flags) == (2, 2, 0)
    assert list(grid.bounds) == [0, 2, 3]
    assert list(grid.first) == [0, 3] and list(grid.last) == [2, 5]
    np.testing.assert_array_equal(grid.channels["mean"], [[1.5, 4.5], [11, 14]])
    np.testing.assert_array_equal(grid.channels["min"], [[0, 3], [10, 13]])
    np.testing.assert_array_equal(grid.channels["max"], [[3, 6], [12, 15]])


def test_a_heat_map_is_cut_by_steps_mode_module_and_place(served: Served):
    def grid(**parameters: Any) -> Any:
        return heat_map(served.get("/api/runs/first/heatmap", statistic="max", **parameters).body)

    assert list(grid(role="weight", mode="EVAL").first) == [0, 1]
    assert list(grid(role="weight", from_=2, to=4).first) == [2, 3]
    assert grid(module="net.10").rows == 3
    one = grid(role="weight", first=1, count=1)
    assert one.choice == 3 and list(one.ids) == [ids(served)["net.1.weight"]]
    assert grid(collection="weights").rows == 3
    assert grid(role="weight", first=99).rows == 0


def test_what_is_not_finite_is_told_apart_from_what_is_missing(served: Served):
    grid = heat_map(served.get("/api/runs/first/heatmap", statistic="mean", role="gradient").body)
    assert grid.nonfinite[2, STEPS - 1] == 1
    assert np.isnan(grid.channels["mean"][2, STEPS - 1])
    assert grid.nonfinite.sum() == 1
    flags = heat_map(
        served.get("/api/runs/first/heatmap", statistic="nonfinite", role="gradient").body
    )
    assert flags.channels["mean"][2].tolist() == [0] * (STEPS - 1) + [1]


def test_statistics_that_were_not_saved_are_made_of_what_was(served: Served):
    def grid(statistic: str, role: str) -> Any:
        answer = served.get("/api/runs/first/heatmap", statistic=statistic, role=role)
        assert answer.status == 200, answer.body
        return heat_map(answer.body)

    std = grid("std", "weight")
    np.testing.assert_array_equal(std.channels["mean"], np.zeros((3, STEPS)))
    zeros = grid("zero_percent", "weight").channels["mean"]
    assert zeros[0, 0] == 100 and zeros[1:].sum() == 0
    updates = grid("update_ratio", "weight")
    np.testing.assert_allclose(
        updates.channels["mean"][2, 1:], [1 / s for s in range(10, 15)], 1e-6
    )
    assert np.isnan(updates.channels["mean"][2, 0])
    ratio = grid("gradient_ratio", "weight")
    np.testing.assert_allclose(ratio.channels["mean"][1, :3], [0.5, 0.25, 0.5 / 3], 1e-6)
    nans = grid("nan_count", "gradient")
    assert nans.channels["mean"][2, STEPS - 1] == 1


def test_series_are_of_several_tensors_and_statistics(served: Served):
    known = ids(served)
    found = served.json(
        "/api/runs/first/series",
        tensor=["net.1.weight"],
        id=[known["net.10.weight"]],
        statistic=["max", "abs_max"],
    )["series"]
    assert {(s["tensor"], s["statistic"]) for s in found} == {
        (name, statistic)
        for name in ("net.1.weight", "net.10.weight")
        for statistic in ("max", "abs_max")
    }
    ten = next(s for s in found if s["tensor"] == "net.10.weight" and s["statistic"] == "max")
    assert ten["mean"] == [10 + step for step in range(STEPS)]
    assert ten["step"] == list(range(STEPS))
    assert all(secs > 1e9 for secs in ten["wall_secs"])


def test_series_have_no_more_points_than_asked_for(served: Served):
    one = served.json("/api/runs/first/series", tensor="net.1.weight", statistic="max", points=2)[
        "series"
    ][0]
    assert one["bucket"] == 3
    assert (one["step"], one["last_step"]) == ([0, 3], [2, 5])
    assert (one["min"], one["mean"], one["max"]) == ([1, 4], [2, 5], [3, 6])


def test_numbers_that_json_lacks_are_counted(served: Served):
    one = served.json("/api/runs/first/series", tensor="gradient/net.10.weight", statistic="mean")[
        "series"
    ][0]
    assert one["mean"][-1] is None
    assert one["nans"] == [0] * (STEPS - 1) + [1]


def test_losses_come_with_all_modes(served: Served):
    series = served.json("/api/runs/first/metrics")["series"]
    assert [(s["tensor"], s["mode"]) for s in series] == [("loss", "TRAIN"), ("loss", "EVAL")]
    assert series[1]["mean"] == [1 / 3, 1 / 6]
    assert [s["global_step"] for s in series] == [[0, 1, 3, 4], [2, 5]]


def test_histograms_share_their_edges(served: Served):
    found = served.json("/api/runs/first/histograms", tensor="net.1.weight", bins=5, steps=3)
    assert found["steps"] == [0, 2, 5]
    assert found["edges"] == [1, 2, 3, 4, 5, 6]
    assert found["counts"] == [[12, 0, 0, 0, 0], [0, 0, 12, 0, 0], [0, 0, 0, 0, 12]]
    assert found["steps_with_value"] == STEPS
    sick = served.json("/api/runs/first/histograms", tensor="gradient/net.10.weight")
    assert sick["nonfinite"][-1] == 1


@pytest.mark.parametrize(
    ("values", "counts"),
    [
        ([-1.7e308, 0.0, 1.7e308, 1.7e308], [1, 0, 1, 2]),
        ([1.79e308] * 3, [0, 0, 0, 3]),
        ([0.0, 5e-324], [0, 0, 2, 0]),
        ([0.0, 0.0], [0, 0, 2, 0]),
    ],
)
def test_histograms_count_every_finite_number(
    tmp_path: Path, values: list[float], counts: list[int]
):
    with smdebug.Hook(
        out_dir=str(tmp_path / "run"),
        save_all=True,
        save_config=smdebug.SaveConfig(save_interval=1),
    ) as hook:
        hook.step()
        hook.save_tensor("x", np.array([*values, np.inf]))
    with serving(tmp_path / "run") as server:
        found = server.json("/api/runs/run/histograms", tensor="x", bins=4)
    assert found["counts"] == [counts]
    assert found["nonfinite"] == [1]
    assert found["edges"] == sorted(set(found["edges"])) and len(found["edges"]) == 5


def test_values_are_slices_of_any_dimension(served: Served):
    def values(**parameters: Any) -> Any:
        return served.json("/api/runs/first/values", tensor="net.1.weight", **parameters)

    whole = values(step=2)
    assert (whole["shape"], whole["slice_shape"], whole["dtype"]) == ([4, 3], [4, 3], "float32")
    assert whole["values"] == [3.0] * 12
    assert values()["step"] == STEPS - 1
    assert values(slice="::2,1")["slice_shape"] == [2]
    assert values(mode="EVAL", step=1)["global_step"] == 5
    sick = served.json("/api/runs/first/values", tensor="gradient/net.10.weight", slice="0")
    assert sick["values"] == ["NaN", 0.5, 0.5]
    assert (sick["nans"], sick["min"]) == (1, 0.5)


def test_values_can_be_saved_as_numpy_files(served: Served):
    answer = served.get("/api/runs/first/values.npy", tensor="net.10.weight", step=1, slice="1:,0")
    np.testing.assert_array_equal(np.load(io.BytesIO(answer.body)), np.full(3, 11, np.float32))
    assert answer.headers["content-disposition"] == 'attachment; filename="net.10.weight_1.npy"'


def test_every_element_type_can_be_read():
    with serving(GOLDEN / "types") as served:
        trial = smdebug.create_trial(str(GOLDEN / "types"))
        seen = 0
        for tensor in served.json("/api/runs/types/tensors")["tensors"]:
            step = trial.tensor(tensor["name"]).steps()[0]
            wanted = trial.tensor(tensor["name"]).value(step)
            if wanted.dtype.kind not in "biufc":
                texts = served.json("/api/runs/types/values", id=tensor["id"], step=step)
                assert texts["values"] == wanted.ravel().tolist()
                continue
            answer = served.get("/api/runs/types/values.npy", id=tensor["id"], step=step)
            assert answer.status == 200, answer.body
            np.testing.assert_array_equal(np.load(io.BytesIO(answer.body)), wanted)
            assert served.get("/api/runs/types/values", id=tensor["id"]).status == 200
            seen += 1
        assert seen > 5


def test_findings_are_made_in_the_background(served: Served):
    found = served.eventually("/api/runs/first/findings", lambda f: f["state"] == "final")
    done = subprocess.run(
        [PROGRAM, "diagnose", "--json", served.json("/api/runs/first")["path"]],
        capture_output=True,
        text=True,
        check=False,
    )
    wanted = json.loads(done.stdout)
    assert [f["rule"] for f in found["findings"]] == [f["rule"] for f in wanted["findings"]]
    assert found["findings"], "a NaN should be found"
    first = found["findings"][0]
    assert first["rank"] == 1
    assert first["evidence"]["violations"]
    hit = first["tensors"][0]
    assert hit["id"] == ids(served)[hit["tensor"]]
    rules = {rule["name"]: rule for rule in served.json("/api/rules")["rules"]}
    assert rules[first["rule"]]["why"] == first["why"]


def test_two_runs_are_compared(served: Served):
    found = served.eventually(
        "/api/compare", lambda c: c["state"] == "ready", a="first", b="second"
    )["result"]
    assert found["is_equal"] is False
    assert found["first"]["step"] == 0
    assert found["first"]["tensor"] == "gradient/net.10.weight"
    assert found["compared"]["steps"] == STEPS
    same = served.eventually("/api/compare", lambda c: c["state"] == "ready", a="first", b="first")
    assert same["result"]["is_equal"] is True
    close = served.eventually(
        "/api/compare", lambda c: c["state"] == "ready", a="first", b="second", absolute=1e9
    )
    assert close["result"]["first"] is None


def test_differences_of_two_runs_are_a_heat_map(served: Served):
    def grid(way: str) -> Any:
        answer = served.get(
            "/api/compare/heatmap",
            a="first",
            b="second",
            statistic="max",
            role="weight",
            **{"as": way},
        )
        assert answer.status == 200, answer.body
        return heat_map(answer.body).channels["mean"]

    steps = np.arange(STEPS)
    np.testing.assert_allclose(grid("difference"), [steps] * 3)
    np.testing.assert_allclose(grid("relative")[2], steps / (10 + 2 * steps), 1e-6)


def test_the_interface_is_described(served: Served):
    text = served.get("/api/openapi.yaml")
    assert text.headers["content-type"] == "application/yaml"
    described = set(re.findall(r"^  (/api\S*):$", text.body.decode(), re.MULTILINE))
    assert "/api/runs/{run}/heatmap" in described
    for path in described - {"/api/events"}:
        answer = served.get(path.replace("{run}", "first"))
        assert answer.status in (200, 400), path
        if answer.status == 400:
            assert "missing" in answer.problem() or "Name" in answer.problem()


# --- HTTP


def test_an_answer_that_did_not_change_is_not_sent_again(served: Served):
    first = served.get("/api/runs/first/tensors")
    again = served.get("/api/runs/first/tensors", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    other = served.get("/api/runs/first/tensors", headers={"If-None-Match": 'W/"x"'})
    assert other.status == 200
    moved = served.get("/api/runs/second/tensors", headers={"If-None-Match": first.headers["etag"]})
    assert moved.status == 200


def test_json_is_compressed_for_those_who_take_it(served: Served):
    plain = served.get("/api/rules")
    small = served.get("/api/rules", headers={"Accept-Encoding": "br, gzip"})
    assert "content-encoding" not in plain.headers
    assert small.headers["content-encoding"] == "gzip"
    assert int(small.headers["content-length"]) < int(plain.headers["content-length"]) / 2
    assert small.body == plain.body
    refused = served.get("/api/rules", headers={"Accept-Encoding": "gzip;q=0"})
    assert "content-encoding" not in refused.headers


def test_heads_have_no_body_and_other_methods_are_refused(served: Served):
    head = served.get("/api/runs", method="HEAD")
    assert (head.status, head.body) == (200, b"")
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        answer = served.get("/api/runs", method=method)
        assert answer.status == 405, method
        assert answer.headers["allow"] == "GET, HEAD"


def test_browsers_are_told_to_trust_nothing_else(served: Served):
    page = served.get("/")
    policy = page.headers["content-security-policy"]
    nonce = re.search(r"script-src 'nonce-([^']+)'", policy)
    assert nonce and "default-src 'none'" in policy and "unsafe-eval" not in policy
    assert b"<script nonce=" in page.body or b"was not built" in page.body
    assert (
        nonce[1]
        != re.search(r"nonce-([^']+)'", served.get("/").headers["content-security-policy"])[1]
    )
    for path in ("/", "/api/runs", "/api/nothing"):
        headers = served.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in headers


def test_browsers_ask_for_the_newest_run_while_they_read_the_page(served: Served):
    addresses = re.findall(
        r"<([^>]*)>; rel=preload; as=fetch; crossorigin", served.get("/").headers["link"]
    )
    assert addresses == ["/api", "/api/runs", "/api/runs/second", "/api/runs/second/tensors"]
    for address in addresses:
        assert served.get(address).status == 200
    assert "link" not in served.get("/api/runs").headers


def test_views_of_the_page_are_the_page(served: Served):
    for path in ("/run/first/overview", "/?view=findings"):
        assert served.get(path).headers["content-type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd.txt",
        "/api/../../etc/passwd",
        "/api/runs/..%2f..%2fetc",
        "/api/runs/../first",
        "/api/runs/first/../second",
        "/api/runs//tensors",
        "/api/runs/first/",
        "/api/",
        "/api/runs/%00",
        "/index.html.bak",
        "/api/runs/first/events/000000000000/000000000000_worker_0.tfevents",
    ],
)
def test_nothing_but_the_interface_can_be_reached(served: Served, path: str):
    answer = served.get(path)
    assert answer.status == 404
    assert b"root:" not in answer.body


@pytest.mark.parametrize(
    ("path", "status", "part"),
    [
        ("/api/runs?x=1", 400, "no parameter 'x'"),
        ("/api/runs/frist", 404, "Did you mean 'first'?"),
        ("/api/runs/first/heatmap", 400, "statistic is missing"),
        ("/api/runs/first/heatmap?statistic=l3", 400, "Did you mean 'l"),
        ("/api/runs/first/heatmap?statistic=l2&rows=0", 400, "rows is 0"),
        ("/api/runs/first/heatmap?statistic=l2&rows=1e3", 400, "no whole number"),
        ("/api/runs/first/heatmap?statistic=l2&role=weights", 400, "Did you mean 'weight'?"),
        ("/api/runs/first/heatmap?statistic=l2&columns=4001", 400, "from 1 to 4000"),
        ("/api/runs/first/heatmap?statistic=l2&from=5&to=5", 400, "not after"),
        ("/api/runs/first/heatmap?statistic=l2&mode=train", 400, "mode is 'train'"),
        ("/api/runs/first/heatmap?statistic=l2&module=nut", 404, "Did you mean 'net'?"),
        ("/api/runs/first/heatmap?statistic=l2&collection=weight", 404, "Did you mean 'weights'?"),
        ("/api/runs/first/heatmap?statistic=l2&worker=x", 404, "no worker 'x'"),
        ("/api/runs/first/series", 400, "Name tensors"),
        ("/api/runs/first/series?tensor=net.1.wieght", 404, "Did you mean 'net.1.weight'?"),
        ("/api/runs/first/series?id=4294967295", 404, "no tensor with the id"),
        ("/api/runs/first/series?id=-1", 400, "id is -1"),
        ("/api/runs/first/values?tensor=loss&id=0", 400, "either"),
        ("/api/runs/first/values?tensor=loss&step=99", 404, "Step 99"),
        ("/api/runs/first/values?tensor=net.1.weight&slice=9", 400, "outside of a dimension of 4"),
        ("/api/runs/first/values?tensor=net.1.weight&slice=0,0,0", 400, "more places"),
        ("/api/runs/first/histograms?tensor=loss&bins=0", 400, "bins is 0"),
        ("/api/compare?a=first", 400, "b is missing"),
        ("/api/compare?a=first&b=x", 404, "no run 'x'"),
        ("/api/compare?a=first&b=second&relative=-1", 400, "at least 0"),
        ("/api/events?run=x", 404, "no run 'x'"),
        ("/api/runs?%zz=1", 400, "hexadecimal"),
        ("/api/runs?a=%ff", 400, "UTF-8"),
        ("/api/runs?" + "x" * 8001, 414, "8000 bytes"),
    ],
)
def test_wrong_arguments_get_a_sentence(served: Served, path: str, status: int, part: str):
    answer = served.get(path)
    assert answer.status == status, answer.body
    assert part in answer.problem()


def test_another_host_name_is_a_trick(served: Served):
    assert served.get("/api/runs", headers={"Host": "evil.example:80"}).status == 403
    assert served.get("/api/runs", headers={"Host": "127.0.0.1.evil.example"}).status == 403
    assert served.get("/api/runs", headers={"Host": f"localhost:{served.port}"}).status == 200


def test_a_token_keeps_others_out(run_dir: Path):
    with serving(run_dir, "--token", "s3cret", "--host", "0.0.0.0") as served:
        assert served.address.endswith("/?token=s3cret")
        assert served.get("/api/runs").status == 401
        assert served.get("/").status == 401
        assert served.get("/api/events").status == 401
        assert served.get("/api/runs", token="s3cre").status == 401
        assert served.get("/api/runs", token="s3cret").status == 200
        assert served.get("/api/runs", headers={"Authorization": "Bearer s3cret"}).status == 200
        assert served.get("/api/runs", headers={"Authorization": "Bearer s3cret2"}).status == 401
        cookie = served.get("/", token="s3cret").headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
        name = cookie.split(";")[0]
        assert served.get("/api/runs", headers={"Cookie": f"a=b; {name}"}).status == 200


def test_other_addresses_demand_a_token(run_dir: Path):
    done = subprocess.run(
        [PROGRAM, "serve", run_dir, "--host", "0.0.0.0"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "--token" in done.stderr


# --- names that somebody else chose


def test_hostile_names_are_only_names(out_dir: Path):
    with smdebug.Hook(
        out_dir=str(out_dir), save_all=True, save_config=smdebug.SaveConfig(save_interval=1)
    ) as hook:
        for step in range(2):
            hook.step()
            for number, name in enumerate(HOSTILE):
                hook.save_tensor(name, np.full(2, number + step, np.float32))
    with serving(out_dir) as served:
        known = ids(served, "run")
        assert set(HOSTILE) <= known.keys()
        for number, name in enumerate(HOSTILE):
            by_id = served.json("/api/runs/run/values", id=known[name], step=0)
            assert by_id["values"] == [number, number]
            assert by_id["tensor"] == name
            by_name = served.get("/api/runs/run/values", tensor=name, step=0)
            assert by_name.status == 200
            series = served.json("/api/runs/run/series", id=known[name], statistic="max")["series"]
            assert series[0]["mean"] == [number, number + 1]
            saved = served.get("/api/runs/run/values.npy", id=known[name])
            assert re.fullmatch(
                r'attachment; filename="[\w.-]+"', saved.headers["content-disposition"], re.ASCII
            )


def test_runs_with_odd_names_have_plain_ids(tmp_path: Path):
    for name in ("a b", "ä", "<img>", "deep/er/run"):
        shutil.copytree(GOLDEN / "hook", tmp_path / name)
    with serving(tmp_path) as served:
        runs = served.json("/api/runs")["runs"]
        assert sorted(run["name"] for run in runs) == ["<img>", "a b", "deep/er/run", "ä"]
        for run in runs:
            assert re.fullmatch(r"[\w.~-]+", run["id"], re.ASCII)
            assert served.json(f"/api/runs/{run['id']}")["name"] == run["name"]
        before = {run["name"]: run["id"] for run in runs}
    with serving(tmp_path) as served:
        assert {run["name"]: run["id"] for run in served.json("/api/runs")["runs"]} == before


# --- live

WRITING = """
import sys, numpy as np, smdebug
hook = smdebug.Hook(out_dir=sys.argv[1], save_all=True, save_config=smdebug.SaveConfig(save_interval=1))
print("ready", flush=True)
step = 0
for line in sys.stdin:
    for _ in range(int(line)):
        hook.step()
        hook.save_tensor("w", np.full(3, step, np.float32))
        step += 1
    print(step, flush=True)
hook.close()
"""


def write(process: subprocess.Popen[str], steps: int) -> None:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{steps}\n")
    process.stdin.flush()
    assert process.stdout.readline()


@pytest.mark.parametrize("kind", ["original", "packed"])
def test_new_steps_arrive_while_a_training_writes(out_dir: Path, kind: str):
    with serving(out_dir) as served, Events(served) as events:
        assert events.response.getheader("content-type") == "text/event-stream"
        assert events.next("hello")["runs"] == []
        writer = start(WRITING, out_dir, SMDEBUG_LAYOUT=kind)
        try:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
            write(writer, 3)
            write(writer, 1)  # the step before is complete when the next begins
            events.next("runs", lambda d: [run["id"] for run in d["runs"]] == ["run"])
            news = served.eventually("/api/runs/run", lambda d: d["steps"] >= 3)
            assert news["state"] == "running"
            first = served.eventually(
                "/api/runs/run/series",
                lambda s: s["series"] and len(s["series"][0]["step"]) >= 3,
                tensor="w",
                statistic="max",
            )
            assert first["series"][0]["mean"][:3] == [0, 1, 2]
            grid = heat_map(served.get("/api/runs/run/heatmap", statistic="max").body)
            assert grid.columns >= 3
            write(writer, 20)
            later = events.next("run", lambda d: d["steps"] >= 20)
            assert later["revision"] > news["revision"]
            grid = heat_map(served.get("/api/runs/run/heatmap", statistic="max").body)
            assert grid.channels["mean"][0].tolist() == list(range(grid.columns))
            assert grid.columns >= 20
            _, problems = writer.communicate(timeout=TIMEOUT_SECS)
            assert writer.returncode == 0, problems
        finally:
            writer.kill()
            writer.wait(TIMEOUT_SECS)
        events.next("run", lambda d: d["state"] == "ended" and d["steps"] == 24)
        events.next("findings", lambda d: d["state"] == "final")
        assert served.json("/api/runs/run/findings")["steps"] == 24


def test_places_where_no_run_is_are_named_and_waited_for(tmp_path: Path):
    record(tmp_path / "runs" / "first")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "today.txt").write_text("x")
    places = [tmp_path / "runs" / "frist", tmp_path / "notes", tmp_path / "runs"]
    with serving(*places) as served:
        errors = served.process.stderr
        assert errors is not None
        assert errors.readline() == (
            f"smdebug: There is no directory '{places[0]}'. Did you mean 'first'? Waiting for it.\n"
        )
        assert errors.readline() == (
            f"smdebug: There is no run in '{places[1]}' yet. Waiting for one.\n"
        )
        record(places[0])
        runs = served.eventually("/api/runs", lambda answer: len(answer["runs"]) == 2)["runs"]
        assert {run["path"] for run in runs} == {str(places[0]), str(places[2] / "first")}
        served.process.terminate()
        assert errors.read() == ""


def test_a_run_that_is_removed_and_comes_back_is_told(tmp_path: Path):
    run = tmp_path / "served/run"
    shutil.copytree(GOLDEN / "hook", run)
    with serving(run.parent) as served, Events(served) as events:
        before = events.next("hello")["runs"][0]
        assert served.get("/api/runs/run/heatmap", statistic="l2").status == 200
        shutil.rmtree(run)
        events.next("run", lambda d: d["state"] == "gone")
        assert served.json("/api/runs/run")["state"] == "gone"
        assert served.json("/api/runs/run/tensors")["tensors"]
        gone = served.get("/api/runs/run/values", id=0)
        assert (gone.status, "were removed" in gone.problem()) == (404, True)
        # At once, as a run that is still being copied would be told as one that goes on.
        shutil.copytree(GOLDEN / "modes", tmp_path / "copy")
        (tmp_path / "copy").rename(run)
        back = events.next("runs", lambda d: d["runs"][0]["state"] == "ended")["runs"][0]
        assert back["revision"] > before["revision"]
        assert back["catalogue"] > before["catalogue"]
        names = {t["name"] for t in served.json("/api/runs/run/tensors")["tensors"]}
        assert "reduced/matrix" not in names


def test_a_server_that_is_started_again_is_another_instance(run_dir: Path):
    with serving(run_dir) as served:
        first = served.json("/api")["instance"]
        tag = served.get("/api/runs/first/tensors").headers["etag"]
    with serving(run_dir) as served:
        assert served.json("/api")["instance"] != first
        again = served.get("/api/runs/first/tensors", headers={"If-None-Match": tag})
        assert again.status == 200


def test_ctrl_c_ends_the_server_with_listeners(run_dir: Path):
    with serving(run_dir) as served, Events(served) as events:
        events.next("hello")
        served.process.send_signal(signal.SIGINT)
        assert served.process.wait(TIMEOUT_SECS) == 0


def test_damaged_files_are_told_and_the_rest_is_served(tmp_path: Path):
    run = tmp_path / "run"
    record(run)
    for file in (run / "events").rglob("*000000000001_worker_0.tfevents"):
        file.write_bytes(b"x" * 10)
    with serving(run) as served:
        bad = served.get("/api/runs/run/values", tensor="net.1.weight", step=1)
        assert bad.status == 500
        assert bad.json()["error"]["code"] == "unreadable"
        assert served.get("/api/runs/run/values", tensor="net.1.weight", step=2).status == 200


# --- many at once


def test_hundreds_of_listeners_and_dead_clients_keep_nobody_waiting(run_dir: Path):
    with serving(run_dir) as served:
        dead = []
        for _ in range(50):
            client = socket.create_connection((served.host, served.port))
            client.sendall(b"GET /api/rules HTTP/1.1\r\nHost: localhost\r\n")  # never ends
            dead.append(client)
        for _ in range(20):
            client = socket.create_connection((served.host, served.port))
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)  # never read
            dead.append(client)
        listeners = [Events(served) for _ in range(200)]
        for listener in listeners:
            assert listener.next("hello")["runs"][0]["id"] == "first"
        problems: list[str] = []

        def ask() -> None:
            for _ in range(20):
                answer = served.get("/api/runs/first/heatmap", statistic="l2")
                if answer.status != 200:
                    problems.append(repr(answer))

        askers = [threading.Thread(target=ask) for _ in range(10)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join(TIMEOUT_SECS)
            assert not asker.is_alive()
        assert problems == []
        threads = len(list(Path(f"/proc/{served.process.pid}/task").iterdir()))
        assert threads < 40
        for client in dead:
            client.close()
        for listener in listeners:
            listener.__exit__()
        assert served.json("/api/runs")["runs"]


# --- reports and notebooks


def answers_of(page: str) -> dict[str, Any]:
    found = re.search(
        r'<script type="application/json" id="smdebug-report">(.*?)</script>', page, re.S
    )
    assert found
    assert "<" not in found[1]
    return json.loads(found[1])["answers"]


def test_a_report_is_the_page_with_the_answers_inside(
    served: Served, run_dir: Path, tmp_path: Path
):
    file = tmp_path / "out.html"
    second = run_dir.parent / "second"
    done = subprocess.run(
        [PROGRAM, "report", run_dir, second, "--html", file],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    page = file.read_text(encoding="utf-8")
    assert page.index("smdebug-report") < page.index("</head>")
    answers = answers_of(page)
    assert answers["/api"]["json"]["is_report"] is True
    tensors = answers["/api/runs/first/tensors"]["json"]
    assert tensors["tensors"] == served.json("/api/runs/first/tensors")["tensors"]
    weight = next(t for t in tensors["tensors"] if t["name"] == "net.10.weight")
    series = answers[f"/api/runs/first/series?id={weight['id']}&points=400"]["json"]["series"]
    assert {s["statistic"] for s in series} >= {"mean", "max", "l2"}
    assert answers[f"/api/runs/first/histograms?id={weight['id']}"]["json"]["steps"]
    assert answers[f"/api/runs/first/values?id={weight['id']}"]["json"]["values"] == [15.0] * 12
    assert answers["/api/runs/first/findings"]["json"]["state"] == "final"
    assert answers["/api/compare?a=first&b=second"]["json"]["state"] == "ready"
    grids = [key for key in answers if "/heatmap?" in key]
    assert (
        "/api/runs/first/heatmap?channels=mean%2Cmin%2Cmax&columns=400&role=weight&rows=400&statistic=l2"
        in grids
    )
    assert any(key.startswith("/api/compare/heatmap?a=first&b=second&channels=") for key in grids)
    import base64

    for key in grids:
        assert heat_map(base64.b64decode(answers[key]["base64"])).rows > 0


def test_a_report_of_hostile_names_stays_one_element(out_dir: Path, tmp_path: Path):
    with smdebug.Hook(out_dir=str(out_dir), save_all=True) as hook:
        hook.step()
        hook.save_tensor("</script><script>alert(1)</script>", np.ones(3, np.float32))
    file = tmp_path / "out.html"
    subprocess.run([PROGRAM, "report", out_dir, "--html", file], check=True, capture_output=True)
    page = file.read_text(encoding="utf-8")
    assert "<script>alert(1)" not in page
    names = [t["name"] for t in answers_of(page)["/api/runs/run/tensors"]["json"]["tensors"]]
    assert names == ["</script><script>alert(1)</script>"]


def test_what_is_no_run_gets_no_report(tmp_path: Path):
    done = subprocess.run(
        [PROGRAM, "report", tmp_path / "nothing", "--html", tmp_path / "x.html"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "There is no directory" in done.stderr
    assert not (tmp_path / "x.html").exists()


def test_notebooks_show_the_page(run_dir: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SMDEBUG_PROGRAM", str(PROGRAM))
    trial = smdebug.create_trial(str(run_dir))
    still = trial.view(height=333)._repr_html_()
    assert "srcdoc=" in still and 'height="333"' in still and "smdebug-report" in still
    live = trial.view(live=True)
    try:
        assert live.address is not None
        assert f'src="{live.address}"' in live._repr_html_()
        host, port = live.address.removeprefix("http://").strip("/").split(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(b"GET /api/runs HTTP/1.0\r\nHost: localhost\r\n\r\n")
            assert b"200 OK" in client.recv(1000)
    finally:
        live.close()
    assert "was closed" in live._repr_html_()
    assert os.environ["SMDEBUG_PROGRAM"]
