"""The demo finds the fault from the recorded data alone, and the picture in the README shows it."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import smdebug

pytest.importorskip("smdebug._core")

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "examples/demo/run.py"
VERDICT = re.compile(r"(\w+) has learned nothing since step (\d+)")

# By its path: other folders have a run.py, too.
specification = importlib.util.spec_from_file_location("smdebug_demo", DEMO)
demo = importlib.util.module_from_spec(specification)
sys.modules["smdebug_demo"] = demo
specification.loader.exec_module(demo)


def run_demo(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    package = [str(ROOT / "python")] if any((ROOT / "python/smdebug").glob("_core*.so")) else []
    paths = [*environment.pop("first_on_path", "").split(), *package, os.getenv("PYTHONPATH", "")]
    return subprocess.run(
        [sys.executable, DEMO, *map(str, arguments)],
        env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def svg_text(file: Path) -> str:
    """The text of a picture, in reading order."""
    parts = re.findall(r"<text [^>]*>([^<]*)</text>", file.read_text(encoding="utf-8"))
    return " ".join(parts).replace("&#160;", " ")


def test_names_the_sick_layer_and_keeps_the_run(tmp_path):
    done = run_demo("--out", tmp_path / "run", "--steps", 30)
    assert done.returncode == 0, done.stderr
    found = VERDICT.search(done.stdout)
    assert found
    assert found.groups() == ("block3", "10")
    assert f"The run is in {tmp_path / 'run'}" in done.stdout
    assert (tmp_path / "run/training_job_end.ts").exists()
    assert "\x1b" not in done.stdout


def test_the_example_saves_whole_weights_at_the_first_step_only(tmp_path):
    demo.numpy_mlp.train(tmp_path, 6)
    trial = smdebug.create_trial(tmp_path)
    weight = trial.tensor("block1/weight")
    assert weight.value(0).shape == (32, 32)
    with pytest.raises(smdebug.exceptions.TensorUnavailableForStep):
        weight.value(2)
    assert weight.series("std")[0].tolist() == [0, 2, 4]
    assert trial.tensor("scalar/loss").steps() == [0, 1, 2, 3, 4, 5]


def test_the_picture_in_the_readme_shows_what_the_demo_finds(tmp_path):
    pytest.importorskip("rich")
    done = run_demo("--out", tmp_path / "run", "--svg", tmp_path / "new.svg")
    assert done.returncode == 0, done.stderr
    pictures = [svg_text(tmp_path / "new.svg"), svg_text(ROOT / "docs/images/demo.svg")]
    named = [VERDICT.search(picture) for picture in pictures]
    assert all(named)
    assert named[0].groups() == named[1].groups() == VERDICT.search(done.stdout).groups()
    assert "font-face" not in (ROOT / "docs/images/demo.svg").read_text(encoding="utf-8")


def test_works_without_rich(tmp_path):
    (tmp_path / "rich.py").write_text("raise ImportError('not here')\n")
    done = run_demo("--out", tmp_path / "run", "--steps", 30, first_on_path=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert VERDICT.search(done.stdout)
    wrong = run_demo("--svg", tmp_path / "x.svg", first_on_path=str(tmp_path))
    assert wrong.returncode == 2
    assert "needs the package rich" in wrong.stderr


def test_finds_another_fault_and_none_where_there_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr(demo.numpy_mlp, "SICK_BLOCK", 1)
    demo.numpy_mlp.train(tmp_path / "sick", 30)
    assert demo.find_fault(demo.gradient_table(tmp_path / "sick")) == demo.Finding("block1", 10)

    monkeypatch.setattr(demo.numpy_mlp, "BAD_STEP", 0)
    demo.numpy_mlp.train(tmp_path / "healthy", 30)
    healthy = demo.gradient_table(tmp_path / "healthy")
    assert demo.find_fault(healthy) is None
    assert "No layer stands out" in demo.verdict(None)


def test_replaces_an_older_run_but_nothing_else(tmp_path):
    for _ in range(2):
        assert run_demo("--out", tmp_path / "run", "--steps", 12).returncode == 0
    (tmp_path / "mine.txt").write_text("precious")
    done = run_demo("--out", tmp_path, "--steps", 12)
    assert done.returncode == 2
    assert "holds no recorded run" in done.stderr
    assert (tmp_path / "mine.txt").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--steps", "3"], "--steps must be at least 12"),
        (["--steps", "many"], "invalid int value"),
        (["--stepz", "30"], "unrecognized arguments"),
    ],
)
def test_wrong_arguments_are_explained(arguments, message):
    done = run_demo(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
