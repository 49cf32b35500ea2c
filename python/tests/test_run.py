"""Running scripts under `smdebug run`, as far as no framework is needed."""

from __future__ import annotations

import json
import os
import signal
import site
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from recorded import PACKAGE, TIMEOUT_SECS
from smdebug import run_config
from smdebug.exceptions import SMDebugRuntimeError, SMDebugValueError
from smdebug.run_config import Choice

SITE = PACKAGE / "smdebug/zcc/site"
PROGRAM = Path(os.environ.get("SMDEBUG_PROGRAM", PACKAGE.parent / "build/dev/smdebug"))
ACTIVE = "import smdebug_activation as a; print(a.find_finder() is not None)"
CONFIGURED = {"SMDEBUG_CONFIG_FILE_PATH": "config.json"}

Done = subprocess.CompletedProcess[str]


def start(*words: object, cwd: Path, **variables: str) -> Done:
    return subprocess.run(
        list(map(str, words)),
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(PACKAGE), **variables},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECS,
        check=False,
    )


def run(*words: object, cwd: Path, **variables: str) -> Done:
    """`python -m smdebug.run`."""
    return start(sys.executable, "-m", "smdebug.run", *words, cwd=cwd, **variables)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Prints its arguments, says something on stderr, and ends with a code of its own."""
    path = tmp_path / "train.py"
    path.write_text(
        "import sys\nprint(sys.argv[1:], sys.path[0])\nprint('oh', file=sys.stderr)\n"
        "sys.exit(int(sys.argv[1]))\n"
    )
    return path


@pytest.mark.parametrize(
    "words",
    [
        ("train.py", "7", "--out", "x"),
        ("--", "train.py", "7", "--out", "x"),
        (sys.executable, "train.py", "7", "--out", "x"),
        ("-m", "train", "7", "--out", "x"),
        ("--interval=3", "--save", "weights", "--", sys.executable, "train.py", "7", "--out", "x"),
    ],
)
def test_output_and_exit_code_are_those_of_the_script(
    script: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 7
    assert done.stdout.startswith("['7', '--out', 'x'] ")
    lines = done.stderr.splitlines()
    assert lines[1] == "oh"
    assert lines[0].startswith("smdebug: recording the loss at every step")
    assert lines[2] == (
        "smdebug: nothing was recorded: no model that is trained was found in the script"
    )
    assert len(lines) == 3
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ((), ("There is no program to run",)),
        (("--intervall", "3", "train.py"), ("no option '--intervall'", "'--interval'?")),
        (("--interval", "0", "train.py"), ("'0' is no whole number of at least 1",)),
        (("--save", "wieghts", "train.py"), ("'wieghts'", "Did you mean 'weights'?")),
        (("--save", "weights:often", "train.py"), ("weights:often",)),
        (("--reductions", "men", "train.py"), ("'men'", "Did you mean 'mean'?")),
        (("--layout", "pack", "train.py"), ("pack", "packed")),
        (("--include", "(", "train.py"), ("(",)),
        (("trian.py",), ("Did you mean 'train.py'?", "trian.py")),
        (("pyhton", "train.py"), ("no program 'pyhton'", "Did you mean 'python'?")),
        (("--config", "none.json", "train.py"), ("none.json",)),
        (("--config", "broken.json", "train.py"), ("broken.json",)),
        (("--config", "wrong.json", "train.py"), ("save_interval",)),
        (("--config", "wrong.json", "--raw", "train.py"), ("only --out goes with it",)),
        (("--out", "ended", "train.py"), ("A job has ended there", "ended")),
        (("--out", "train.py", "train.py"), ("--out is not a directory",)),
    ],
)
def test_wrong_arguments_start_nothing(
    script: Path, tmp_path: Path, words: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    script.write_text("open('started', 'w')\n")
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "wrong.json").write_text('{"HookParameters": {"save_interval": -1}}')
    (tmp_path / "ended").mkdir()
    (tmp_path / "ended/training_job_end.ts").write_text("")
    for done in (run(*words, cwd=tmp_path), start(PROGRAM, "run", *words, cwd=tmp_path)):
        if done.returncode == 2 and "PROGRAM is required" in done.stderr:
            continue  # the native program says it so
        assert done.returncode == 2, done.stderr
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1
        for part in parts:
            assert part in done.stderr
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(("number", "how"), [(signal.SIGINT, "caught"), (signal.SIGTERM, "killed")])
def test_signals_reach_the_script(tmp_path: Path, number: int, how: str) -> None:
    (tmp_path / "train.py").write_text(
        "import sys, time\ntry:\n    print('ready', flush=True)\n    time.sleep(60)\n"
        "except KeyboardInterrupt:\n    print('caught')\n    sys.exit(5)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "smdebug.run", "train.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    out, _ = process.communicate(timeout=TIMEOUT_SECS)
    assert out == ("caught\n" if how == "caught" else "")
    assert process.returncode == (5 if how == "caught" else -number)


# ---- activation


def test_children_are_activated_and_nothing_heavy_is_imported(tmp_path: Path) -> None:
    child = (
        "import sys; before = set(sys.modules); import smdebug_activation as a\n"
        "print(a.find_finder() is not None, 'torch' in a.find_finder().names)\n"
        "print(sorted({'numpy', 'smdebug', 'torch', 'importlib.util', 'typing', 're'} & before))\n"
    )
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    done = run(sys.executable, "-c", parent, cwd=tmp_path)
    assert done.stdout == "True True\n[]\n", done.stderr


@pytest.mark.parametrize(
    ("variables", "active"),
    [
        ({}, False),
        (CONFIGURED, True),
        ({"SMDEBUG_CONFIG_FILE_PATH": ""}, False),
        ({**CONFIGURED, "USE_SMDEBUG": "0"}, False),
        ({**CONFIGURED, "USE_SMDEBUG": "Off"}, False),
        ({**CONFIGURED, "USE_SMDEBUG": "1"}, True),
    ],
)
def test_activation_needs_a_configuration(
    tmp_path: Path, variables: dict[str, str], active: bool
) -> None:
    path = f"{SITE}{os.pathsep}{PACKAGE}"
    done = start(sys.executable, "-c", ACTIVE, cwd=tmp_path, PYTHONPATH=path, **variables)
    assert done.stdout == f"{active}\n"
    assert done.stderr == ""


def test_the_next_sitecustomize_runs_and_takes_its_name(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text(
        "import sys\nvalue = 42\nprint('mine', file=sys.stderr)\n"
    )
    path = os.pathsep.join(map(str, (SITE, own, PACKAGE)))
    code = f"import sitecustomize, sys; print(sitecustomize.value, {str(SITE)!r} in sys.path); {ACTIVE}"
    done = start(sys.executable, "-c", code, cwd=tmp_path, PYTHONPATH=path, **CONFIGURED)
    assert done.stdout == "42 False\nTrue\n"
    assert done.stderr == "mine\n"


def test_an_error_in_the_next_sitecustomize_is_told_as_without_us(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import nothing_like_it\n")
    plain = start(sys.executable, "-c", "print(1)", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    path = os.pathsep.join(map(str, (SITE, tmp_path, PACKAGE)))
    done = start(sys.executable, "-c", "print(1)", cwd=tmp_path, PYTHONPATH=path, **CONFIGURED)
    assert (done.stdout, done.returncode) == (plain.stdout, plain.returncode)
    assert done.stderr == plain.stderr


@pytest.mark.parametrize("flag", ["-I", "-E", "-S"])
def test_isolated_interpreters_are_left_alone(tmp_path: Path, flag: str) -> None:
    code = "import sys; print('smdebug_activation' in sys.modules)"
    path = f"{SITE}{os.pathsep}{PACKAGE}"
    done = start(sys.executable, flag, "-c", code, cwd=tmp_path, PYTHONPATH=path, **CONFIGURED)
    # The .pth file of an installed package is read wherever packages are.
    installed = str(PACKAGE) in map(os.path.realpath, site.getsitepackages()) and flag != "-S"
    assert (done.stdout, done.stderr) == (f"{installed}\n", "")


def test_the_pth_file_activates_once(tmp_path: Path) -> None:
    code = (
        f"import site, sys; site.addsitedir({str(PACKAGE)!r}); site.addsitedir({str(PACKAGE)!r})\n"
        "print([type(f).__name__ for f in sys.meta_path].count('Finder'))\n"
    )
    done = start(sys.executable, "-I", "-c", code, cwd=tmp_path, **CONFIGURED)
    assert (done.stdout, done.stderr) == ("1\n", "")
    done = start(sys.executable, "-I", "-c", code, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("0\n", "")


def fake_framework(folder: Path, patch: str) -> str:
    """The package in a copy whose only framework is `frame`; the path to it."""
    (folder / "smdebug/zcc").mkdir(parents=True)
    for name in ("smdebug/__init__.py", "smdebug/zcc/__init__.py"):
        (folder / name).write_text("")
    (folder / "smdebug/zcc/frame.py").write_text(patch)
    source = (PACKAGE / "smdebug_activation.py").read_text()
    (folder / "smdebug_activation.py").write_text(source)
    (folder / "frame.py").write_text("value = 1\nseen = type(__loader__).__name__\n")
    return str(folder)


def test_a_framework_is_patched_when_it_is_complete(tmp_path: Path) -> None:
    path = fake_framework(
        tmp_path / "a",
        "import frame\nclass Undo:\n    def undo(self): pass\n"
        "def patch():\n    frame.value += 1\n    return Undo()\n",
    )
    code = (
        "import smdebug_activation as a; a.activate(); a.activate()\n"
        "from frame import value, seen; import frame\n"
        "print(value, seen, type(frame.__loader__).__name__, type(frame.__spec__.loader).__name__)\n"
    )
    done = start(sys.executable, "-c", code, cwd=tmp_path, PYTHONPATH=path, **CONFIGURED)
    assert done.stdout == "2 SourceFileLoader SourceFileLoader SourceFileLoader\n", done.stderr
    late = "import frame, smdebug_activation as a; a.activate(); print(frame.value)"
    done = start(sys.executable, "-c", late, cwd=tmp_path, PYTHONPATH=path, **CONFIGURED)
    assert done.stdout == "2\n", done.stderr


def test_a_failure_in_patching_is_one_line(tmp_path: Path) -> None:
    path = fake_framework(tmp_path / "b", "def patch():\n    raise ValueError('other version')\n")
    code = "import smdebug_activation as a; a.activate(); import frame; print(frame.value)"
    done = start(sys.executable, "-c", code, cwd=tmp_path, PYTHONPATH=path, **CONFIGURED)
    assert done.stdout == "1\n"
    assert done.stderr == (
        "smdebug: nothing is recorded, training goes on. ValueError: other version\n"
    )
    strict = {**CONFIGURED, "SMDEBUG_STRICT": "1"}
    done = start(sys.executable, "-c", code, cwd=tmp_path, PYTHONPATH=path, **strict)
    assert done.returncode == 1


# ---- the configuration


def parameters(**chosen: Any) -> dict[str, Any]:
    return run_config.document_of(Choice(**chosen), "/run")["HookParameters"]


def test_options_become_a_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    document = run_config.document_of(
        Choice(save="weights,gradients:10", reductions="min,abs_l2", interval=5, workers="all"),
        "/r",
    )
    assert document["LocalPath"] == "/r"
    assert document["HookParameters"] == {
        "layout": "packed",
        "include_workers": "all",
        "reductions": ["min", "abs_l2"],
        "save_raw_tensor": False,
        "save_interval": 5,
    }
    by_name = {
        c["CollectionName"]: c["CollectionParameters"] for c in document["CollectionConfigurations"]
    }
    assert by_name["losses"] == {"save_interval": 1}
    assert by_name["gradients"] == {"save_interval": 10}
    assert set(by_name) == {"losses", "weights", "gradients"}
    assert parameters(save="all")["save_all"] is True
    assert parameters(include=("a,b",))["include_regex"] == ["a,b"]


def test_the_budget_decides_unless_an_interval_is_given() -> None:
    assert parameters()["max_overhead"] == 0.01
    assert parameters()["max_interval"] == 100
    assert "max_overhead" not in parameters(interval=7)
    assert "1% of the time" in run_config.describe(run_config.document_of(Choice(), "/run"))


def test_the_run_gets_a_free_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_config.place_of(None, "a/train.py") == str(tmp_path / "runs/train")
    (tmp_path / "runs/train").mkdir(parents=True)
    assert run_config.place_of(None, "a/train.py") == str(tmp_path / "runs/train-2")
    assert run_config.place_of("s3://bucket/run", "train.py") == "s3://bucket/run"
    (tmp_path / "old").mkdir()
    (tmp_path / "old/training_job_end.ts").write_text("")
    with pytest.raises(SMDebugRuntimeError, match="A job has ended there"):
        run_config.place_of("old", "train.py")


@pytest.mark.parametrize("save", ["weights:0", "weights:-1", "weights:", "weights,,losses"])
def test_wrong_lists_are_refused(save: str) -> None:
    with pytest.raises(SMDebugValueError):
        run_config.document_of(Choice(save=save), "/run")


def test_a_configuration_of_the_environment_is_taken(script: Path, tmp_path: Path) -> None:
    script.write_text("import os\nprint(open(os.environ['SMDEBUG_CONFIG_FILE_PATH']).read())\n")
    (tmp_path / "mine.json").write_text(
        '{"LocalPath": "there", "HookParameters": {"save_all": true}}'
    )
    done = run("train.py", cwd=tmp_path, SMDEBUG_CONFIG_FILE_PATH="mine.json")
    assert json.loads(done.stdout) == {"LocalPath": "there", "HookParameters": {"save_all": True}}
    other = run("--out", "x", "--config", "mine.json", "train.py", cwd=tmp_path)
    assert json.loads(other.stdout)["LocalPath"] == str(tmp_path / "x")
