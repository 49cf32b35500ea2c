"""`smdebug plan`: what would be recorded, from the first steps of a real script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from smdebug.open_trial import create_trial
from test_pytorch_run import PLAIN, SCRIPTS, SEQUENTIAL_NAMES, start

ENDLESS = "1000000"


def plan(*words: object) -> dict[str, Any]:
    done = start("-m", "smdebug.cli", "plan", "--json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_plan_names_tensors_steps_and_sizes_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    found = plan("--out", tmp_path / "run", "--interval", 10, "--raw", PLAIN, "module", ENDLESS)
    assert files_below(tmp_path) == []
    assert found["models"] == ["Sequential"]
    assert found["steps_run"] == 3
    tensors = {t["name"]: t for t in found["tensors"]}
    expected = {name for name in SEQUENTIAL_NAMES if "input" not in name}
    assert set(tensors) == expected | {"CrossEntropyLoss_output_0"}
    weight = tensors["Sequential_0.weight"]
    assert (weight["shape"], weight["dtype"]) == ([4, 3], "float32")
    assert weight["collections"] == ["weights"] and weight["saves_values"]
    assert len(weight["reductions"]) == 10
    when = {c["name"]: c["when"] for c in found["collections"]}
    assert when["losses"] == "every step"
    assert when["weights"] == when["outputs"] == "every 10th step"
    assert found["saved_steps_per_1000"] == 1000
    assert 0 < found["bytes_per_full_step"] < found["bytes_per_1000_steps"]
    assert found["predicted_overhead"] > 0
    assert found["step_secs"] > 0 and found["hook_secs_per_full_step"] > 0
    assert found["unmatched"] == []


@pytest.mark.parametrize("layout", ["packed", "original"])
def test_the_predicted_bytes_are_near_those_of_the_run(tmp_path: Path, layout: str) -> None:
    words = ("--raw", "--interval", "1", "--layout", layout)
    found = plan(*words, PLAIN, "module", ENDLESS)
    done = start("-m", "smdebug.run", "--out", tmp_path / "run", *words, PLAIN, "module", 200)
    assert done.returncode == 0, done.stderr
    assert len(create_trial(str(tmp_path / "run")).steps()) == 200
    written = sum(path.stat().st_size for path in files_below(tmp_path / "run")) / 200
    assert written / 1.5 < found["bytes_per_full_step"] < written * 1.5


def test_patterns_that_match_nothing_are_named_with_what_is_near(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps(
            {
                "HookParameters": {"start_step": 500, "include_regex": "Sequentail_0"},
                "CollectionConfigurations": [
                    {
                        "CollectionName": "mine",
                        "CollectionParameters": {"include_regex": "0_ouput"},
                    },
                    {
                        "CollectionName": "right",
                        "CollectionParameters": {"include_regex": "2_output", "save_steps": "7,9"},
                    },
                ],
            }
        )
    )
    found = plan("--config", config, "--steps", "2", PLAIN, "function", ENDLESS)
    assert found["steps_run"] == 2
    unmatched = {u["collection"]: u for u in found["unmatched"]}
    assert set(unmatched) == {"default", "mine"}
    assert any(name.startswith("Sequential_0") for name in unmatched["default"]["near"])
    assert "0_output_0" in unmatched["mine"]["near"]
    when = {c["name"]: c["when"] for c in found["collections"]}
    assert when["right"] == "every 500th step from 500; steps 7, 9"
    # Tensors are found although none of the steps that ran would be saved.
    assert "2_output_0" in {t["name"] for t in found["tensors"]}


def test_a_plan_for_people_keeps_what_the_script_prints_apart() -> None:
    done = start("-m", "smdebug.cli", "plan", "--include", "Seqential", PLAIN, "own", ENDLESS)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "models    Sequential"
    assert any(line.startswith("overhead  about ") for line in lines)
    assert any(line.split()[:3] == ["Half_output_0", "number", "float32"] for line in lines)
    assert "No tensor matches 'Seqential' of the collection 'default'. Near it:" in done.stdout
    printed = [line for line in done.stderr.splitlines() if line[:2] in ("0 ", "1 ", "2 ", "3 ")]
    assert len(printed) == 3  # the script ended before its fourth step


def test_scripts_that_train_nothing_or_fail_are_told(tmp_path: Path) -> None:
    for text, ending in (("import torch", "exit code 0"), ("raise SystemExit(3)", "exit code 3")):
        script = tmp_path / "script.py"
        script.write_text(text)
        done = start("-m", "smdebug.cli", "plan", script)
        assert done.returncode == 2
        assert done.stdout == ""
        assert f"ended with {ending} before a model was trained" in done.stderr


def test_a_script_that_ends_early_is_planned_from_its_steps() -> None:
    assert plan("--steps", "5", PLAIN, "module", "2")["steps_run"] == 2


def test_ranks_and_trainers_can_be_planned(tmp_path: Path) -> None:
    launcher = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone")
    found = plan("--steps", "2", *launcher, SCRIPTS / "ranks.py", "torchrun")
    assert found["models"] == ["DistributedDataParallel"]
    found = plan("--steps", "2", SCRIPTS / "trainers.py", "lightning", tmp_path)
    assert found["models"] == ["Lit"]
    assert "cross_entropy_loss_output_0" in {t["name"] for t in found["tensors"]}


CATCHING = """
import torch
from torch import nn
model = nn.Linear(2, 1)
while True:
    try:
        model(torch.ones(1, 2)).sum().backward()
    except BaseException:
        pass
"""


def test_a_script_that_catches_everything_is_ended_all_the_same(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(CATCHING)
    assert plan(script)["steps_run"] == 3
