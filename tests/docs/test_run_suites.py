"""What runs the suites calls a suite failed that fails, skips a test or runs none, and counts right."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import run_suites  # noqa: E402

PASSES = "def test_one(): pass\n"
FAILS = "def test_two(): assert False\n"
SKIPS = "import pytest\n@pytest.mark.skip\ndef test_three(): pass\n"
RAISES = (
    "import pytest\n@pytest.fixture\ndef broken(): raise OSError\ndef test_four(broken): pass\n"
)
DOES_NOT_LOAD = "import no_such_module\n"


@pytest.fixture(autouse=True)
def logs(tmp_path, monkeypatch):
    monkeypatch.setattr(run_suites, "LOGS", tmp_path)


def outcome(command: str) -> tuple[int, int, list[str]]:
    return run_suites.run(run_suites.Suite("tried", "a try", command), verbose=False)


def pytest_on(folder: Path, *files: str) -> str:
    """The command that runs pytest on files of these contents."""
    for number, content in enumerate(files):
        (folder / f"test_{number}.py").write_text(content)
    return f"'{sys.executable}' -m pytest -p no:cacheprovider --rootdir '{folder}' '{folder}'"


@pytest.mark.parametrize(
    ("files", "passed", "failed"),
    [
        ([PASSES], 1, 0),
        ([PASSES, FAILS], 1, 1),
        ([PASSES, RAISES], 1, 1),
        ([PASSES, SKIPS], 1, 1),
        ([SKIPS], 0, 1),
        ([DOES_NOT_LOAD], 0, 1),
        ([], 0, 1),
    ],
)
def test_what_pytest_says_is_counted(tmp_path, files, passed, failed):
    found = outcome(pytest_on(tmp_path, *files))
    assert found[:2] == (passed, failed)
    assert bool(found[2]) == (failed > 0)


@pytest.mark.parametrize(
    ("said", "passed", "failed"),
    [
        ("12 passed, 0 failed", 12, 0),
        ("soak: 3 passed, 0 failed", 3, 0),
        ("12 passed, 0 failed, 2 skipped", 12, 2),
        ("100% tests passed, 0 tests failed out of 7", 7, 0),
        (" Tests  94 passed (94)", 94, 0),
        (" Tests  90 passed | 4 skipped (94)", 90, 4),
        ("2 passed, 0 failed\n====== 3 passed in 0.10s ======", 5, 0),
        ("all is well", 0, 1),
        ("0 passed, 0 failed", 0, 1),
    ],
)
def test_closing_lines_of_other_runners_are_added_up(said, passed, failed):
    assert outcome(f"echo '{said}'")[:2] == (passed, failed)


def test_a_command_that_fails_after_its_tests_is_a_failure():
    passed, failed, problems = outcome("echo '5 passed, 0 failed' && exit 3")
    assert (passed, failed) == (5, 1)
    assert problems == ["exit code 3"]


def test_what_failed_is_named(tmp_path):
    _, _, problems = outcome(pytest_on(tmp_path, PASSES, FAILS))
    assert any("test_1.py::test_two" in problem for problem in problems)


def test_what_failed_in_c_plus_plus_is_named():
    said = ["smd/hook/hook_test.cpp:7: Failure", "FAILED: build/tsan/hook_test"]
    command = " && ".join(f"echo '{line}'" for line in [*said, "1 passed, 1 failed"])
    assert outcome(f"{command} && exit 1") == (1, 1, ["exit code 1", *said])


def test_the_counts_of_all_suites_end_the_output(monkeypatch, capsys):
    suites = [("one", "2 passed, 0 failed"), ("two", "3 passed, 1 failed"), ("none", "hello")]
    monkeypatch.setattr(
        run_suites,
        "SUITES",
        [run_suites.Suite(name, "a try", f"echo '{said}'") for name, said in suites],
    )
    monkeypatch.setattr(sys, "argv", ["run_suites.py"])
    assert run_suites.main() == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-3:] == [
        "--- two failed: 1 failed",
        "--- none failed: ran no test",
        "5 passed, 2 failed",
    ]
    monkeypatch.setattr(sys, "argv", ["run_suites.py", "--only", "one"])
    assert run_suites.main() == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 passed, 0 failed"


def test_a_suite_that_is_not_there_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["run_suites.py", "--only", "ccp"])
    with pytest.raises(SystemExit) as stopped:
        run_suites.main()
    assert stopped.value.code == 2
    assert "there is no suite 'ccp', but 'cpp'" in capsys.readouterr().err


def test_ctrl_c_ends_it_and_its_suites_in_one_line():
    # Who starts the tests may ignore the signal, which is inherited.
    program = f"""
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {str(ROOT / "tools")!r})
import run_suites
run_suites.LOGS = run_suites.Path({str(run_suites.LOGS)!r})
run_suites.SUITES = [run_suites.Suite("slow", "a try", "echo $$ > {run_suites.LOGS}/pid; exec sleep 60")]
sys.exit(run_suites.main())
"""
    runner = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    pid = run_suites.LOGS / "pid"
    while runner.poll() is None and not (pid.exists() and pid.read_text().strip()):
        pass
    os.killpg(runner.pid, signal.SIGINT)
    _, said = runner.communicate(timeout=30)
    assert said == "The tests were stopped; nothing is counted.\n"
    assert runner.returncode == 130
    assert not Path(f"/proc/{pid.read_text().strip()}").exists()
