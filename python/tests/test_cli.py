"""The program `smdebug`, run as people run it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import smdebug
from recorded import PACKAGE, TIMEOUT_SECS, tensors
from smdebug import cli

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("SMDEBUG_PROGRAM", ROOT / "build/dev/smdebug"))
GOLDEN = ROOT / "tests/golden"
INDEX = "index/000000000/000000000001_worker_0.json"
EVENTS = "events/000000000001/000000000001_worker_0.tfevents"

Done = subprocess.CompletedProcess[str]


def run(*words: object, program: Path = PROGRAM, **variables: str) -> Done:
    return subprocess.run(
        [program, *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(PACKAGE), **variables},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECS,
        check=False,
    )


def report(*words: object) -> dict[str, Any]:
    return json.loads(run("verify", "--json", *words).stdout)


def fails_with(done: Done, *parts: str) -> None:
    """Wrong usage: exit code 2, nothing on stdout, one sentence on stderr."""
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    for part in parts:
        assert part in done.stderr


@pytest.fixture
def recorded_run(out_dir: Path) -> Path:
    """Three steps of `w` and `bias` by the hook, finished."""
    with smdebug.Hook(
        out_dir=str(out_dir), save_all=True, save_config=smdebug.SaveConfig(save_interval=1)
    ) as hook:
        hook.set_mode(smdebug.modes.TRAIN)
        for step in range(3):
            hook.step()
            hook.save_tensor("w", np.full((2, 3), step, np.float32))
            hook.save_tensor("bias", np.arange(100) + step)
    return out_dir


def values_of(run_dir: Path) -> dict[str, Any]:
    """The tensors of step 1, found through its index and read by the functions below the hook."""
    return {name: record.value for name, record in tensors(run_dir, 1).items()}


def masked_crc32c(data: bytes) -> bytes:
    """As the frames of records hold it; written from the definition."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF).to_bytes(4, "little")


def test_the_version_is_that_of_the_package():
    done = run("--version")
    assert done.stdout == f"smdebug {smdebug.__version__}\n"
    assert done.returncode == 0


def test_every_command_explains_itself_with_examples():
    described = json.loads(run("help", "--json").stdout)
    names = [command["name"] for command in described["commands"]]
    assert "verify" in names
    overview = run("--help").stdout
    for name in names:
        assert f"\n  {name}" in overview
        done = run(name, "--help")
        assert done.returncode == 0
        assert "Examples:\n" in done.stdout
        assert "130  interrupted" in done.stdout


def test_wrong_usage_gets_the_nearest_choice():
    fails_with(run("verfy"), "Did you mean 'verify'?")
    fails_with(run("verify", "--reapir", "x"), "Did you mean '--repair'?")
    fails_with(run("verify"), "RUN is required")
    fails_with(run("verify", ".", "--color", "nevr"), "Did you mean 'never'?")


def test_wrong_paths_get_one_clear_sentence(tmp_path, recorded_run):
    fails_with(run("verify", tmp_path / "nowhere"), "There is no directory")
    fails_with(run("verify", recorded_run / EVENTS), "is a file", str(recorded_run))
    fails_with(run("verify", recorded_run / "events"), "only a part of a run", str(recorded_run))
    (tmp_path / "empty").mkdir()
    fails_with(run("verify", tmp_path / "empty"), "is empty")
    (tmp_path / "code").mkdir()
    (tmp_path / "code/train.py").write_text("")
    fails_with(
        run("verify", tmp_path / "code"), "index/, events/, v2/log/ and collections/", "source code"
    )
    fails_with(run("verify", "--json", recorded_run.parent), str(recorded_run))


def test_a_run_in_the_home_directory_is_found(recorded_run):
    done = run("verify", f"~/{recorded_run.name}", HOME=str(recorded_run.parent))
    assert done.returncode == 0


def test_a_recorded_run_is_well(recorded_run):
    done = run("verify", recorded_run)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("no damage\n")
    found = report("--deep", recorded_run)
    assert (found["steps"], found["tensors"], found["damage"]) == (3, 6, 0)
    assert found["problems"] == []


@pytest.mark.parametrize(
    "name", ["types", "modes", "workers", "running", "devices", "shapes", "collections", "hook"]
)
def test_runs_of_the_original_are_well(name):
    found = report("--deep", GOLDEN / name)
    assert [problem for problem in found["problems"] if problem["damage"]] == []


def test_colour_is_a_matter_of_choice(recorded_run):
    assert "\x1b" not in run("verify", recorded_run).stdout
    assert "\x1b[32m" in run("verify", "--color=always", recorded_run).stdout


def cut_off(run_dir: Path) -> None:
    content = (run_dir / EVENTS).read_bytes()
    (run_dir / EVENTS).write_bytes(content[:-5])


def flip_frame(run_dir: Path) -> None:
    content = bytearray((run_dir / EVENTS).read_bytes())
    content[3] ^= 1
    (run_dir / EVENTS).write_bytes(content)


def flip_footer(run_dir: Path) -> None:
    content = bytearray((run_dir / EVENTS).read_bytes())
    content[-1] ^= 1
    (run_dir / EVENTS).write_bytes(content)


def change_index(run_dir: Path, old: str, new: str) -> None:
    text = (run_dir / INDEX).read_text()
    assert old in text
    (run_dir / INDEX).write_text(text.replace(old, new, 1))


def add_wrong_checksum(run_dir: Path) -> None:
    document = json.loads((run_dir / INDEX).read_text())
    document["tensor_payload"][0]["crc32c"] = 12345
    (run_dir / INDEX).write_text(json.dumps(document))


def escape_by_link(run_dir: Path) -> None:
    outside = run_dir.parent / "outside.tfevents"
    (run_dir / EVENTS).rename(outside)
    (run_dir / EVENTS).symlink_to(outside)


DAMAGE = {
    "cut_off": (cut_off, "record_outside"),
    "frame": (flip_frame, "record_broken"),
    "footer": (flip_footer, "payload_differs"),
    "name": (lambda d: change_index(d, '"bias"', '"bios"'), "name_differs"),
    "offset": (lambda d: change_index(d, '"start_idx": 0', '"start_idx": 2'), "record_broken"),
    "escape": (lambda d: change_index(d, "events/", "../events/"), "event_file_outside"),
    "checksum": (add_wrong_checksum, "payload_differs"),
    "link": (escape_by_link, "event_file_outside"),
    "no_events": (lambda d: (d / EVENTS).unlink(), "event_file_missing"),
    "no_index": (lambda d: (d / INDEX).unlink(), "event_file_unindexed"),
    "bad_index": (lambda d: (d / INDEX).write_text("{" * 10_000), "index_unreadable"),
    "leftover": (lambda d: (d / f"{EVENTS}.tmp").write_text("x"), "temporary_file"),
    "bad_collections": (
        lambda d: next(d.glob("collections/*/*")).write_text("[]"),
        "collections_unreadable",
    ),
    "no_collections": (lambda d: shutil.rmtree(d / "collections"), "collections_missing"),
    "workers": (
        lambda d: (d / INDEX).rename(str(d / INDEX).replace("worker_0", "worker_7")),
        "workers_differ",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_planted_damage_is_found(name, recorded_run):
    plant, fault = DAMAGE[name]
    plant(recorded_run)
    found = report(recorded_run)
    assert fault in [problem["fault"] for problem in found["problems"] if problem["damage"]]
    assert all(problem["message"] for problem in found["problems"])
    assert run("verify", recorded_run).returncode == 1


@pytest.mark.parametrize("name", ["name", "offset", "escape", "no_index", "bad_index"])
def test_repair_brings_the_values_back(name, recorded_run):
    before = values_of(recorded_run)
    others = {
        path: path.read_bytes()
        for path in recorded_run.rglob("*")
        if path.is_file() and path != recorded_run / INDEX
    }
    DAMAGE[name][0](recorded_run)
    done = run("verify", "--repair", recorded_run)
    assert done.returncode == 0, done.stdout
    assert f"wrote  {INDEX}: Rebuilt from the event file with 2 tensors of TRAIN step 1." in (
        done.stdout
    )
    assert run("verify", recorded_run).returncode == 0
    after = values_of(recorded_run)
    assert list(after) == list(before)
    for tensor, value in before.items():
        np.testing.assert_array_equal(after[tensor], value)
    for path, content in others.items():
        assert path.read_bytes() == content


def test_repair_leaves_a_torn_tail_out_and_says_so(recorded_run):
    (recorded_run / INDEX).unlink()
    cut_off(recorded_run)
    done = run("verify", "--repair", recorded_run)
    assert done.returncode == 1
    assert "cut off" in done.stdout
    assert list(values_of(recorded_run)) == ["w"]


def test_repair_cannot_bring_lost_bytes_back(recorded_run):
    text = (recorded_run / INDEX).read_text()
    cut_off(recorded_run)
    assert run("verify", "--repair", recorded_run).returncode == 1
    assert (recorded_run / INDEX).read_text() == text


def wait_until_open(process: subprocess.Popen[str], suffix: str) -> None:
    """Returns once the process has a file open whose name ends so."""
    deadline = time.monotonic() + TIMEOUT_SECS
    never = threading.Event()
    while not any(
        os.path.realpath(fd).endswith(suffix) for fd in Path(f"/proc/{process.pid}/fd").iterdir()
    ):
        assert process.poll() is None and time.monotonic() < deadline
        never.wait(0.005)


def test_an_interrupt_ends_a_long_check_at_once(tmp_path):
    # A payload to sum up that has no end: a sparse file takes no space, but hours to read.
    run_dir = tmp_path / "run"
    name = "events/000000000000/000000000000_worker_0.tfevents"
    (run_dir / name).parent.mkdir(parents=True)
    (run_dir / "index/000000000").mkdir(parents=True)
    payload = 2**31 - 100
    header = payload.to_bytes(8, "little")
    header += masked_crc32c(header)
    entries = []
    with open(run_dir / name, "wb") as file:
        for i in range(500):
            file.seek(i * (payload + 16))
            file.write(header)
            entries.append(
                {
                    "tensorname": "w",
                    "start_idx": i * (payload + 16),
                    "length": payload + 16,
                    "crc32c": 1,
                }
            )
        file.truncate(500 * (payload + 16))
    meta = {"mode": "TRAIN", "mode_step": 0, "event_file_name": name}
    (run_dir / "index/000000000/000000000000_worker_0.json").write_text(
        json.dumps({"meta": meta, "tensor_payload": entries})
    )
    process = subprocess.Popen(
        [PROGRAM, "verify", run_dir], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_until_open(process, ".tfevents")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=TIMEOUT_SECS)
    assert process.returncode == 130
    assert (out, err) == ("", "")


def test_a_reader_that_goes_away_is_no_error(recorded_run):
    for path in (recorded_run / "index/000000000").iterdir():
        meta = {"mode": "TRAIN", "mode_step": 0, "event_file_name": EVENTS}
        entries = [{"tensorname": "x", "start_idx": 1, "length": 1}] * 5000
        path.write_text(json.dumps({"meta": meta, "tensor_payload": entries}))
    done = subprocess.run(
        ["bash", "-c", f"'{PROGRAM}' verify '{recorded_run}' | head -1"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECS,
        check=False,
    )
    assert done.stdout.startswith("3 steps")
    assert done.stderr == ""


def test_output_that_is_lost_is_an_error():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [PROGRAM, "--help"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=TIMEOUT_SECS,
            check=False,
        )
    assert done.returncode == 2
    assert "could not be written" in done.stderr


def complete(*words: str) -> list[str]:
    """What bash offers for the last word."""
    script = """
source <("$0" completion bash)
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_smdebug
printf '%s\\n' "${COMPREPLY[@]}"
"""
    done = subprocess.run(
        ["bash", "-c", script, PROGRAM, "smdebug", *words],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECS,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_commands_options_and_values():
    assert complete("ver") == ["verify"]
    assert complete("--json", "comp") == ["compact", "completion"]
    assert complete("verify", "--re") == ["--repair"]
    assert complete("verify", "--color", "al") == ["always"]
    assert complete("--color", "ne") == ["never"]
    assert complete("completion", "z") == ["zsh"]
    assert complete("verify", "") == []  # left to the shell, which knows paths
    assert complete("verify", "some/pa") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_valid(shell, tmp_path):
    script = run("completion", shell).stdout
    assert "verify" in script
    if shutil.which(shell) is None:
        # The quotes must at least pair up in a way that any shell of this family accepts.
        assert script.count("'") % 2 == 0
        return
    (tmp_path / "script").write_text(script)
    subprocess.run([shell, "-n", tmp_path / "script"], check=True)


def test_the_manual_page_is_understood():
    page = run("help", "--man").stdout
    assert page.startswith(".TH SMDEBUG 1 ")
    if shutil.which("groff") is None:
        return
    done = subprocess.run(
        ["groff", "-man", "-Tascii", "-ww"],
        input=page,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECS,
        check=True,
    )
    assert done.stderr == ""
    assert "--repair" in done.stdout


def copy_of_program(folder: Path) -> Path:
    """A copy of the program, which finds the libraries that a wheel has brought."""
    folder.mkdir()
    shutil.copy(PROGRAM, folder / "smdebug")
    libraries = Path(smdebug.__file__).parents[1] / "smdebug.libs"
    if libraries.exists():
        (folder.parent / libraries.name).symlink_to(libraries)
    return folder / "smdebug"


def program_beside_python(folder: Path) -> Path:
    """A copy of the program beside an interpreter, as in an installed environment."""
    copy_of_program(folder)
    (folder / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (folder / "python3").chmod(0o755)
    return folder / "smdebug"


def test_commands_in_python_run_in_the_interpreter_beside_the_program(tmp_path):
    program = program_beside_python(tmp_path / "bin")
    done = subprocess.run(
        [program, "--json", "environment"],
        env={"PYTHONPATH": str(PACKAGE), "PATH": "/nowhere"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    about = json.loads(done.stdout)
    assert about["smdebug"] == smdebug.__version__
    assert about["packages"]["numpy"] == np.__version__


def test_without_python_the_hand_over_fails_with_a_sentence(tmp_path):
    alone = copy_of_program(tmp_path / "bin")
    done = run("environment", program=alone, PATH="/nowhere")
    fails_with(done, "written in Python", "cannot be started")


def test_commands_in_python_are_in_the_catalog_and_refuse_others(capsys):
    described = json.loads(run("help", "--json").stdout)
    assert set(cli.COMMANDS) <= {command["name"] for command in described["commands"]}
    assert cli.main(["dance"]) == 2
    assert cli.main([]) == 2
    assert "'dance' is not a command" in capsys.readouterr().err
    assert cli.main(["environment"]) == 0
    assert f"smdebug     {smdebug.__version__}" in capsys.readouterr().out


# --- commands that look at runs


@pytest.fixture
def curves(out_dir: Path) -> Path:
    """Twelve steps of a loss with one NaN and of a weight; finished."""
    with smdebug.Hook(
        out_dir=str(out_dir), save_all=True, save_config=smdebug.SaveConfig(save_interval=1)
    ) as hook:
        hook.set_mode(smdebug.modes.TRAIN)
        for step in range(12):
            hook.step()
            hook.save_tensor("fc/weight", np.full((2, 2), step, np.float32))
            hook.save_scalar("loss", float("nan") if step == 6 else 12.0 - step)
    return out_dir


KEYS = {
    "info": {
        *("run", "state", "silent_secs", "workers", "announced_workers", "steps"),
        *("incomplete_steps", "modes", "tensors", "collections", "first_wall_secs"),
        *("last_wall_secs", "layout", "event_files", "event_bytes", "index_files", "index_bytes"),
        *("findings", "health"),
    },
    "ls": {"run", "tensors", "not_listed"},
    "show": {
        *("run", "tensor", "step", "mode", "mode_step", "worker", "dtype", "shape", "elements"),
        *("bytes", "wall_secs", "stored", "computed", "values"),
    },
    "plot": {"run", "mode", "series"},
    "diff": {
        *("a", "b", "equal", "first", "worst", "differing_tensors"),
        *("only_in_a", "only_in_b", "compared"),
    },
    "tail": {"step", "mode", "mode_step", "numbers"},
    "export": {"run", "file", "bytes", "tensors", "columns"},
}


@pytest.mark.parametrize("command", KEYS)
def test_json_of_every_command_has_its_keys(command, curves, tmp_path):
    pytest.importorskip("pyarrow")
    program = program_beside_python(tmp_path / "bin")
    arguments = {
        "show": ["scalar/loss"],
        "plot": ["scalar/loss"],
        "diff": [curves],
        "tail": ["--exit-with-job", "--from", "11"],
        "export": [tmp_path / "numbers.csv"],
    }
    done = subprocess.run(
        [program, command, "--json", curves, *arguments.get(command, [])],
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    assert set(json.loads(done.stdout)) == KEYS[command]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("info", "RUN", "--mode", "train"), "has no option '--mode'"),
        (("ls", "RUN", "--colection", "all"), "Did you mean '--collection'?"),
        (("ls", "RUN", "--sort", "sise"), "Did you mean 'size'?"),
        (("show", "RUN", "fc/wieght"), "Did you mean 'fc/weight'"),
        (("show", "RUN", "fc/weight", "--step", "many"), "many"),
        (("plot", "RUN", "scalar/loss", "--width", "0"), "0"),
        (("diff", "RUN"), "B is required"),
        (("tail", "RUN", "--regex", "("), "("),
        (("export", "RUN", "numbers.xls"), ".parquet"),
    ],
)
def test_wrong_arguments_get_one_sentence(words, part, curves):
    fails_with(run(*[str(curves) if word == "RUN" else word for word in words]), part)


@pytest.mark.parametrize("command", ["info", "ls", "show", "plot", "diff", "tail", "export"])
def test_every_command_refuses_what_is_no_run(command, tmp_path):
    (tmp_path / "code").mkdir()
    (tmp_path / "code/train.py").write_text("")
    rest = {"show": ["x"], "plot": ["x"], "diff": ["x"], "export": [tmp_path / "x.csv"]}
    fails_with(run(command, tmp_path / "code", *rest.get(command, [])), "source code")


def test_info_and_ls_tell_what_was_recorded(curves):
    about = json.loads(run("info", "--json", curves).stdout)
    assert (about["state"], about["steps"], about["tensors"]) == ("ended", 12, 2)
    assert about["modes"] == [{"mode": "TRAIN", "steps": 12, "first_step": 0, "last_step": 11}]
    collections = {found["name"]: found["tensors"] for found in about["collections"]}
    assert collections["all"] == 2
    # The last loss of this run is NaN, but scalars are looked at only on request.
    assert about["findings"] == []
    listed = {
        found["name"]: found for found in json.loads(run("ls", "--json", curves).stdout)["tensors"]
    }
    assert listed["fc/weight"]["dtype"] == "float32"
    assert listed["fc/weight"]["shape"] == [2, 2]
    assert listed["scalar/loss"]["steps"] == 12


def test_info_lists_what_the_hook_found_out(out_dir):
    with smdebug.Hook(str(out_dir), save_all=True, first_bad_tensor=True) as hook:
        hook.step()
        hook.save("w", np.array([1, np.nan]))
    file = "findings/first_bad_tensor_worker_0.json"
    assert json.loads(run("info", "--json", out_dir).stdout)["findings"] == [file]
    assert f"finding     {file}" in run("info", out_dir).stdout


def test_plot_draws_in_the_width_it_is_given(curves):
    done = run("plot", curves, "scalar/loss", "--width", "40", "--height", "4", "--ascii")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "scalar/loss  12 steps, last 1",
        " 12 +ooooo                              ",
        "    |     ooooooooooo                   ",
        "6.5 +                      oooooooo     ",
        "  1 +                              ooooo",
        "    +-------------------x---------------",
        "     0              step              11",
        "  x NaN",
        "scalar/loss: NaN 1 at step 6",
    ]


def test_diff_tells_equal_runs_from_others(curves, tmp_path):
    shutil.copytree(curves, tmp_path / "same")
    assert run("diff", curves, tmp_path / "same").returncode == 0
    shutil.rmtree(tmp_path / "same/index")
    done = run("diff", curves, tmp_path / "same")
    assert done.returncode == 1
    assert "only in A  2 tensors: fc/weight, scalar/loss" in done.stdout


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather", ".csv", ".jsonl"])
def test_export_writes_what_the_run_holds(suffix, curves, tmp_path):
    pytest.importorskip("pyarrow")
    program = program_beside_python(tmp_path / "bin")
    target = tmp_path / f"numbers{suffix}"
    done = subprocess.run(
        [program, "export", curves, target, "--regex", "weight", "--reduction", "max"],
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"wrote {target}: 1 tensors, ")
    if suffix == ".jsonl":
        rows = [json.loads(line) for line in target.read_text().splitlines()]
        assert [row["max"] for row in rows] == list(range(12))
    elif suffix == ".csv":
        lines = target.read_text().splitlines()
        assert lines[0] == '"tensor","mode","step","mode_step","worker","max","value"'
        assert lines[12] == '"fc/weight","TRAIN",11,11,"worker_0",11,'
    else:
        assert target.stat().st_size > 0


RECORDER = """
import sys, numpy as np, smdebug
with smdebug.Hook(out_dir=sys.argv[1], save_all=True, save_config=smdebug.SaveConfig(save_interval=1)) as hook:
    hook.set_mode(smdebug.modes.TRAIN)
    print("ready", flush=True)
    for line in sys.stdin:
        hook.step()
        hook.save_scalar("loss", float(line))
        hook.end_step()
"""


def start_tail(*words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [PROGRAM, "tail", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_tail_follows_a_job_from_before_its_begin_to_its_end(out_dir):
    tail = start_tail(out_dir, "--json", "--exit-with-job")
    assert "Waiting for it." in tail.stderr.readline()
    job = subprocess.Popen(
        [sys.executable, "-c", RECORDER, out_dir],
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert job.stdout.readline() == "ready\n"
    for step in range(5):
        job.stdin.write(f"{step / 2}\n")
        job.stdin.flush()
        # The job waits for us, so that the step before must have been seen while it ran.
        if step > 0:
            seen = json.loads(tail.stdout.readline())
            assert (seen["step"], seen["numbers"]) == (step - 1, {"scalar/loss": (step - 1) / 2})
    job.stdin.close()
    assert job.wait(TIMEOUT_SECS) == 0
    assert json.loads(tail.stdout.readline())["step"] == 4
    assert tail.wait(TIMEOUT_SECS) == 0
    assert tail.stdout.read() == ""


def test_ctrl_c_ends_tail(curves, tmp_path):
    waiting = start_tail(tmp_path / "nowhere")
    assert "Waiting for it." in waiting.stderr.readline()
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(TIMEOUT_SECS) == 130
    ended = start_tail(curves)
    assert "The job has ended" in ended.stderr.readline()
    ended.send_signal(signal.SIGINT)
    assert ended.wait(TIMEOUT_SECS) == 130
    assert ended.stdout.read().count("\n") == 11


@pytest.mark.parametrize("command", ["ls", "tail --exit-with-job --from 0", "info"])
def test_a_reader_that_goes_away_ends_every_command_quietly(command, curves):
    done = subprocess.run(
        ["bash", "-c", f"'{PROGRAM}' {command} '{curves}' | head -1"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECS,
        check=False,
    )
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_hostile_names_are_shown_harmlessly(tmp_path):
    # A directory name that is no UTF-8, and a tensor name that would clear the screen.
    folder = os.fsencode(tmp_path) + b"/run\xff\x1b[2J"
    with smdebug.Hook(
        out_dir=os.fsdecode(tmp_path / "run"),
        save_all=True,
        save_config=smdebug.SaveConfig(save_interval=1),
    ) as hook:
        hook.step()
        hook.save_tensor("w\x1b[2J\x07", np.zeros(2, np.float32))
    os.rename(tmp_path / "run", folder)
    for words in (["info"], ["ls"], ["ls", "--json"], ["info", "--json"]):
        done = subprocess.run(
            [PROGRAM, *words, folder], capture_output=True, timeout=TIMEOUT_SECS, check=False
        )
        assert done.returncode == 0, done.stderr
        assert b"\x1b" not in done.stdout and b"\x07" not in done.stdout
        assert done.stdout.decode("utf-8")
        if "--json" in words:
            json.loads(done.stdout)
    done = subprocess.run(
        [PROGRAM, "show", folder, "nothing\x1b"],
        capture_output=True,
        timeout=TIMEOUT_SECS,
        check=False,
    )
    assert done.returncode == 2
    assert b"\x1b" not in done.stderr


def test_lines_fit_the_terminal(curves):
    script = shutil.which("script")
    assert script is not None, "the program script, which makes a terminal, is not installed"
    done = subprocess.run(
        [script, "-qec", f"stty cols 57; {PROGRAM} ls --color=never {curves}", "/dev/null"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECS,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 3, done.stdout
    assert all(len(line) <= 57 for line in lines)
    assert "scalar/l…" in done.stdout


LOOKS = [
    ("ls",),
    ("ls", "--regex", "reduced"),
    ("show", "losses/loss:0"),
    ("show", "reduced/matrix", "--step", "0"),
    ("plot", "losses/loss:0"),
    ("plot", "reduced/vector", "--reduction", "l2"),
    ("tail", "--exit-with-job"),
]


@pytest.mark.parametrize("words", LOOKS, ids=" ".join)
@pytest.mark.parametrize("form", ["--json", "--color=never"])
def test_commands_say_the_same_of_a_packed_run(words, form):
    command, *rest = words
    seen = []
    for place in (GOLDEN / "hook", GOLDEN / "packed/hook"):
        done = run(command, place, *rest, form)
        assert done.returncode == 0, done.stderr
        assert done.stdout
        seen.append(done.stdout.replace(str(place), "RUN"))
    if command == "ls":
        # How many bytes something takes is a matter of the layout.
        seen = [re.sub(r'"bytes": \d+|[\d.]+ (B|KiB)', "SIZE", text) for text in seen]
        seen = [re.sub(r" +", " ", text) for text in seen]
    assert seen[0] == seen[1]


def test_a_packed_run_differs_in_nothing_from_its_source():
    for name in ("hook", "types", "workers"):
        done = run("diff", GOLDEN / name, GOLDEN / "packed" / name)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.endswith("the runs are equal\n")


def test_the_table_of_a_packed_run_is_the_same(tmp_path):
    program = program_beside_python(tmp_path / "bin")
    tables = []
    for number, place in enumerate((GOLDEN / "hook", GOLDEN / "packed/hook")):
        out = tmp_path / f"{number}.csv"
        done = subprocess.run(
            [program, "export", place, out],
            env={**os.environ, "PYTHONPATH": str(PACKAGE)},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        tables.append(out.read_text())
    assert tables[0] == tables[1]
    assert tables[0].count("\n") > 10


def test_a_torn_packed_run_is_repaired_only_on_request(tmp_path):
    place = tmp_path / "run"
    shutil.copytree(GOLDEN / "packed/hook", place)
    (place / "training_job_end.ts").unlink()
    segment = next(place.glob("v2/seg/*/*/*"))
    log = next(place.glob("v2/log/*/*"))
    segment.write_bytes(segment.read_bytes()[:-50])
    log.write_bytes(log.read_bytes()[:-3])
    before = segment.read_bytes()
    assert run("verify", place).returncode == 0
    found = report("--repair", place)
    assert found["repairs"] == []
    assert segment.read_bytes() == before
    found = report("--repair", "--stopped", place)
    assert len(found["repairs"]) == 2
    assert [problem["fault"] for problem in report(place)["problems"]] == ["end_marker_missing"]
    assert segment.read_bytes() == next((GOLDEN / "packed/hook").glob("v2/seg/*/*/*")).read_bytes()
    assert run("diff", GOLDEN / "hook", place).returncode == 0


def test_repack_leaves_a_mark_that_verify_knows_when_it_is_killed(tmp_path):
    place = tmp_path / "run"
    with smdebug.Hook(
        out_dir=str(place), save_all=True, save_config=smdebug.SaveConfig(save_interval=1)
    ) as hook:
        for _ in range(40):
            hook.step()
            hook.save_tensor("w", np.zeros((1000, 1000), np.float32))
    copy = tmp_path / "copy"
    process = subprocess.Popen([PROGRAM, "repack", place, copy, "--layout", "packed"])
    wait_until(lambda: any(copy.glob("v2/seg/*/*/*")))
    process.kill()
    process.wait()
    assert not (copy / "training_job_end.ts").exists()
    assert "copy_incomplete" in [problem["fault"] for problem in report(copy)["problems"]]
    fails_with(run("repack", place, copy, "--layout", "packed"), "was interrupted")


def wait_until(done) -> None:
    deadline = time.monotonic() + TIMEOUT_SECS
    while not done():
        assert time.monotonic() < deadline
        threading.Event().wait(0.001)
