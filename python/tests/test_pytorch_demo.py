"""The demo finds the fault from the recorded data alone, and the picture in the README shows it."""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "examples/demo/run.py"
PATHS = {"PYTHONPATH": os.pathsep.join([str(ROOT / "python"), os.getenv("PYTHONPATH", "")])}
VERDICT = re.compile(r"(\w+) has learned nothing since step (\d+)")

# By its path: other folders have a run.py, too.
specification = importlib.util.spec_from_file_location("smdebug_demo", DEMO)
demo = importlib.util.module_from_spec(specification)
sys.modules["smdebug_demo"] = demo
specification.loader.exec_module(demo)


@pytest.fixture(autouse=True)
def _package_of_this_tree(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", PATHS["PYTHONPATH"])


def run_demo(*arguments: object, first_on_path: str = "") -> subprocess.CompletedProcess[str]:
    paths = f"{first_on_path}{os.pathsep}{PATHS['PYTHONPATH']}"
    return subprocess.run(
        [sys.executable, DEMO, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=300,
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
    assert re.search(r"^warning: LayerStopped: .*block3", done.stdout, re.M)
    assert f"The report, for any browser: {tmp_path / 'run/report.html'}" in done.stdout
    assert "block3" in (tmp_path / "run/report.html").read_text(encoding="utf-8")
    command = re.search(r"^See it on a live page: (\S+) serve --open (\S+)$", done.stdout, re.M)
    assert os.access(command[1], os.X_OK) and command[2] == str(tmp_path / "run")
    assert (tmp_path / "run/training_job_end.ts").exists()
    assert "\x1b" not in done.stdout


def test_the_picture_in_the_readme_shows_what_the_demo_finds(tmp_path):
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


@pytest.mark.parametrize(("sick", "finding"), [("block1", demo.Finding("block1", 10)), ("", None)])
def test_finds_another_fault_and_none_where_there_is_none(tmp_path, sick, finding):
    demo.finish(demo.train(tmp_path / "run", "--steps", "30", "--sick", sick))
    assert demo.find_fault(demo.gradient_table(tmp_path / "run")) == finding
    assert "No layer stands out" in demo.verdict(None)


def test_a_terminal_shows_the_table_while_the_training_goes_on(tmp_path):
    """On a real terminal: the table is there before the training has ended."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    command = [sys.executable, str(DEMO), "--out", str(tmp_path / "run"), "--steps", "60"]
    shown = subprocess.Popen(
        command, stdout=follower, stderr=follower, env={**os.environ, **PATHS, "TERM": "xterm"}
    )
    os.close(follower)
    text = ""
    with contextlib.suppress(OSError):  # the other end is closed
        while piece := os.read(leader, 65536):
            text += piece.decode()
    os.close(leader)
    assert shown.wait() == 0
    live, _, end = text.partition("looks fine")
    assert "block3" in live
    assert VERDICT.search(end)


def test_a_training_that_fails_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "TRAIN", tmp_path / "none.py")
    (tmp_path / "none.py").write_text("raise SystemExit(3)")
    with pytest.raises(SystemExit, match="exit code 3"):
        demo.finish(demo.train(tmp_path / "run"))


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
