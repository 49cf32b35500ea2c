#!/usr/bin/env python3
"""Runs the test suites, two at a time, and adds up what passed.

A suite fails when its command fails, when it ran no test, or when it skipped one. Logs go to
build/logs/. Each suite has a folder of its own for temporary files, which is removed if it passes.
The last line is `N passed, M failed` over all suites.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "build" / "logs"
PYTEST = ".venvs/dev/bin/pytest"
BUILD = "tools/page.sh && tools/build.sh dev"
FIRST_BUILD = ("build", "dev")
LANES = 2
# Environments, builds and the cache of the compiler; measured in a clone with none of them.
DISK_OF_ALL_SUITES = "about 17 GB"
# Tests of the package that need another environment, and have a suite of their own.
APART = ("s3_", "aws_", "pytorch", "mxnet", "xgboost", "lightgbm", "tensorflow", "keras")

SESSIONS = "test_tensorflow_session*.py"
ESTIMATORS = "test_tensorflow_estimator*.py"
KERAS = "test_keras{,_steps,_rules,_given}.py"
KERAS_ON_TENSORFLOW = "test_keras_{tape,tensorflow,run,plan,device_arrays}.py"
# The original has no frameworks in its environment; those of the hooks lend theirs.
BESIDE_THE_ORIGINAL = " && ".join(
    f"tools/venv.sh {name}" for name in ("original", "moto", "torch", "mxnet", "xgboost17", "tf215")
)


@dataclass(frozen=True)
class Suite:
    """A name, what it covers, and the shell command that runs it."""

    name: str
    covers: str
    command: str


def pytests(venv: str, *groups: str) -> str:
    """Runs each group of test files in a process of its own."""
    tests = (f".venvs/{venv}/bin/python -m pytest python/tests/{group}" for group in groups)
    return " && ".join(tests)


SUITES = [
    Suite("lint", "formatting, types, layers", f"{BUILD} && tools/lint.sh"),
    Suite("cpp", "the C++ core", f"{BUILD} && ctest --preset dev"),
    Suite(
        "python",
        "the Python package, and the trainings of the fault bench",
        f"{BUILD} && {PYTEST} python/tests bench/faults"
        + "".join(f" --ignore-glob='*/test_{name}*'" for name in APART),
    ),
    Suite(
        "torch",
        "the hook for PyTorch, with the real framework",
        f"{BUILD} && tools/venv.sh torch && .venvs/torch/bin/python -m pytest python/tests/test_pytorch*.py",
    ),
    Suite(
        "mxnet",
        "the hook for MXNet, with the real framework",
        f"{BUILD} && tools/venv.sh mxnet && .venvs/mxnet/bin/python -m pytest python/tests/test_mxnet*.py",
    ),
    Suite(
        "xgboost",
        "the hooks for XGBoost and LightGBM, with the real packages",
        f"{BUILD} && tools/venv.sh xgboost && .venvs/xgboost/bin/python -m pytest python/tests/test_xgboost*.py python/tests/test_lightgbm*.py",
    ),
    Suite(
        "xgboost17",
        "the hook for XGBoost, with an older version",
        f"{BUILD} && tools/venv.sh xgboost17 && .venvs/xgboost17/bin/python -m pytest python/tests/test_xgboost.py python/tests/test_xgboost_input.py",
    ),
    Suite(
        "tf",
        "the hooks for sessions and for Keras 2 and 3, with the current TensorFlow",
        f"{BUILD} && tools/venv.sh tf && {pytests('tf', SESSIONS, KERAS, KERAS_ON_TENSORFLOW)}",
    ),
    Suite(
        "tf215",
        "the hooks for sessions, Estimators and Keras 2, with the last TensorFlow that has them",
        f"{BUILD} && tools/venv.sh tf215 && {pytests('tf215', SESSIONS, ESTIMATORS, KERAS, KERAS_ON_TENSORFLOW)}",
    ),
    Suite(
        "keras-jax",
        "the hook for Keras on JAX",
        f"{BUILD} && tools/venv.sh keras-jax && export KERAS_BACKEND=jax && {pytests('keras-jax', KERAS)}",
    ),
    Suite(
        "keras-torch",
        "the hook for Keras on PyTorch",
        f"{BUILD} && tools/venv.sh keras-torch && export KERAS_BACKEND=torch && {pytests('keras-torch', KERAS)}",
    ),
    Suite(
        "s3",
        "object storage and services of AWS, against real servers",
        f"{BUILD} && tools/venv.sh moto && {PYTEST} python/tests/test_s3_*.py python/tests/test_aws_*.py",
    ),
    Suite(
        "nvrtc",
        "the kernels for CUDA devices, compiled by NVIDIA's compiler; needs no device",
        f"{BUILD} && tools/venv.sh nvrtc && {PYTEST} tests/nvrtc",
    ),
    Suite("docs", "examples and links in the documentation", f"{BUILD} && {PYTEST} tests/docs"),
    Suite(
        "interop",
        "files exchanged with the original's released package",
        f"{BUILD} && {BESIDE_THE_ORIGINAL} && {PYTEST} tests/interop",
    ),
    Suite(
        "sagemaker",
        "what the SageMaker SDK asks for, and jobs that are interrupted",
        f"{BUILD} && tools/venv.sh sagemaker && {PYTEST} tests/sagemaker",
    ),
    Suite(
        "tensorboard",
        "files for TensorBoard, read by the real one",
        f"{BUILD} && tools/venv.sh tensorboard && tools/venv.sh moto && {PYTEST} tests/tensorboard",
    ),
    Suite(
        "exporters",
        "MLflow, Weights & Biases and OpenTelemetry, with their packages",
        f"{BUILD} && tools/venv.sh exporters && .venvs/exporters/bin/pytest tests/exporters",
    ),
    Suite(
        "clusters",
        "rules on Dask and Ray, with their packages",
        f"{BUILD} && tools/venv.sh clusters && .venvs/clusters/bin/pytest tests/clusters",
    ),
    Suite(
        "http",
        "the server against the description of its interface, with schemathesis",
        f"{BUILD} && tools/venv.sh schemathesis && .venvs/schemathesis/bin/python -m pytest tests/http",
    ),
    Suite(
        "viewer",
        "the parts of the page that need no browser, and its style",
        "export NO_COLOR=1 && tools/node.sh viewer npm run lint && tools/node.sh viewer npm test && tools/page.sh",
    ),
    Suite(
        "browser",
        "the page in Chromium, against the server and as a report",
        f"{BUILD} && tools/node.sh tests/browser npm test",
    ),
    Suite(
        "native",
        "the installed C++ package, its examples, and its adapters for libtorch and XGBoost",
        f"{BUILD} && tools/build.sh release && tests/native/run.sh build/release",
    ),
    Suite("wheel", "the wheel in a fresh environment", "tools/page.sh && tests/wheel/run.sh"),
    Suite(
        "faults",
        "kills, full disks, signals",
        f"{BUILD} && tools/venv.sh moto && tests/fault/run.sh",
    ),
    Suite(
        "soak",
        "the checks of the soak, and the soak itself for half a minute",
        f"{BUILD} && tools/venv.sh moto && {PYTEST} tests/soak && .venvs/dev/bin/python tests/soak/run.py --minutes 0.5",
    ),
    Suite("hostile", "broken and malicious files", f"{BUILD} && {PYTEST} tests/hostile"),
    Suite(
        "sanitizers",
        "address, undefined behaviour, threads",
        "tools/page.sh && tools/build.sh asan && tools/build.sh tsan && tests/sanitize.sh",
    ),
    Suite("fuzz", "every parser, 30 seconds each", "tools/build.sh asan && fuzz/run.sh 30"),
]

COUNTS = [
    re.compile(
        r"^(?:\w+: )?(?P<passed>\d+) passed, (?P<failed>\d+) failed(?:, (?P<skipped>\d+) skipped)?$"
    ),
    # Vitest.
    re.compile(
        r"^Tests +(?:(?P<failed>\d+) failed \| )?(?P<passed>\d+) passed(?: \| (?P<skipped>\d+) skipped)? \("
    ),
    re.compile(r"\d+% tests passed, (?P<failed>\d+) tests failed out of (?P<total>\d+)"),
]


def pytest_counts(line: str) -> tuple[int, int, int] | None:
    """(passed, failed, skipped) of pytest's closing line."""
    if not re.search(r"\bin [\d.]+s( \([\d:]+\))?\s*=*$", line):
        return None
    found = {
        word: int(n)
        for n, word in re.findall(r"(\d+) (passed|failed|errors?|skipped|xfailed)", line)
    }
    failed = found.get("failed", 0) + found.get("error", 0) + found.get("errors", 0)
    return found.get("passed", 0), failed, found.get("skipped", 0) + found.get("xfailed", 0)


def counts(output: str) -> tuple[int, int, int]:
    """(passed, failed, skipped): the sum of all closing lines in the output of a suite."""
    total = [0, 0, 0]
    for line in output.splitlines():
        line = line.strip()
        found = pytest_counts(line)
        for pattern in COUNTS:
            match = pattern.search(line)
            if match is None:
                continue
            groups = match.groupdict()
            failed = int(groups["failed"] or 0)
            passed = int(groups["passed"]) if "passed" in groups else int(groups["total"]) - failed
            found = passed, failed, int(groups.get("skipped") or 0)
        if found is not None:
            total = [a + b for a, b in zip(total, found, strict=True)]
    return total[0], total[1], total[2]


def complaints(output: str) -> list[str]:
    """The lines of a suite's output that name what failed."""
    found = re.compile(
        r"^(FAILED|ERROR):? |: Failure$|\*\*\*(Failed|Timeout|Exception|Not Run)|: error: "
    )
    return [line.strip() for line in output.splitlines() if found.search(line)]


def run(suite: Suite, verbose: bool) -> tuple[int, int, list[str]]:
    """Runs a suite; (passed, failed, what is wrong)."""
    log = LOGS / f"{suite.name}.log"
    say(f"--- {suite.name}: {suite.covers}")
    start = time.monotonic()
    # Short, as sockets lie in it; open to others, as some tests give up their rights.
    temporary = tempfile.mkdtemp(prefix=f"smd-{suite.name}-")
    os.chmod(temporary, 0o755)
    with log.open("w") as file:
        process = subprocess.Popen(
            ["bash", "-o", "pipefail", "-c", suite.command],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": temporary},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
        )
        assert process.stdout is not None
        for line in process.stdout:
            file.write(line)
            if verbose:
                print(line, end="", flush=True)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = code = os.waitstatus_to_exitcode(status)
    output = log.read_text()
    passed, failed, skipped = counts(output)
    problem = ""
    if code != 0:
        problem = f"exit code {code}"
        failed = max(failed, 1)
    elif passed + failed == 0:
        problem = "ran no test"
        failed = 1
    elif skipped:
        problem = f"skipped {skipped}"
        failed += skipped
    wall_secs, cpu_secs = time.monotonic() - start, used.ru_utime + used.ru_stime
    secs = f"{wall_secs:.0f} s ({cpu_secs:.0f} s of processors)"
    told = [f"    {suite.name}: {passed} passed, {failed} failed in {secs} {problem}".rstrip()]
    if problem and not verbose:
        told += output.splitlines()[-60:]
    if not problem and failed == 0:
        shutil.rmtree(temporary, ignore_errors=True)
        say(*told)
        return passed, failed, []
    say(*told, f"    {suite.name}: {temporary} has its temporary files; {free_space()}")
    return passed, failed, [problem or f"{failed} failed", *complaints(output)[:20]]


def say(*lines: str) -> None:
    """Prints lines that no other suite gets between."""
    print("\n".join(lines) + "\n", end="", flush=True)


def run_all(suites: list[Suite], lanes: int, verbose: bool) -> list[tuple[int, int, list[str]]]:
    """Runs suites, as many at a time as there are lanes: most of them use one processor, or wait."""
    with ThreadPoolExecutor(lanes) as pool:
        runs = [pool.submit(run, suite, verbose) for suite in suites]
        try:
            return [one.result() for one in runs]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def free_space() -> str:
    return f"{shutil.disk_usage(ROOT).free / 1e9:.1f} GB of disk are free"


def prepare(suites: list[Suite], tool: str) -> subprocess.Popen[bytes]:
    """Makes what suites ask for with `tool`, in the background and in the order of need, with the
    time that their tests leave. The first suite is in need of the build `dev` itself.

    A suite waits for its own; where this fails, the suite tries again and tells why.
    """
    commands = " ".join(suite.command for suite in suites)
    names = dict.fromkeys(re.findall(rf"tools/{tool}\.sh ([\w-]+)", commands))
    steps = [f"nice -n 19 tools/{tool}.sh {name}" for name in names if (tool, name) != FIRST_BUILD]
    with (LOGS / f"{tool}.log").open("w") as log:
        command = "; ".join(steps) or "true"
        return subprocess.Popen(["bash", "-c", command], cwd=ROOT, stdout=log, stderr=log)


def run_and_count(suites: list[Suite], verbose: bool) -> int:
    """Runs suites, and closes with what failed and the sums; the exit status."""
    background = [prepare(suites, "venv"), prepare(suites, "build")]
    total_passed = total_failed = 0
    wrong: dict[str, list[str]] = {}
    lanes = 1 if verbose else LANES
    for suite, (passed, failed, problems) in zip(
        suites, run_all(suites, lanes, verbose), strict=True
    ):
        total_passed += passed
        total_failed += failed
        if problems:
            wrong[suite.name] = problems
    for process in background:
        process.wait()
    for name, problems in wrong.items():
        print(f"--- {name} failed: " + "\n    ".join(problems))
    print(f"{total_passed} passed, {total_failed} failed")
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", help="comma separated suites: " + ", ".join(s.name for s in SUITES)
    )
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="show the output of the suites, which run one by one then",
    )
    args = parser.parse_args()
    known = [suite.name for suite in SUITES]
    wanted = args.only.split(",") if args.only else known
    for name in wanted:
        if name not in known:
            near = "".join(f", but '{other}'" for other in get_close_matches(name, known, 1))
            parser.error(f"there is no suite '{name}'{near}; there are {', '.join(known)}")
    LOGS.mkdir(parents=True, exist_ok=True)
    print(f"{free_space()}; a first run of all suites takes {DISK_OF_ALL_SUITES}", flush=True)
    os.environ.setdefault("CCACHE_DIR", str(Path.home() / ".cache" / "ccache"))
    # Frameworks are installed without compiled modules: each is compiled once, when it is imported.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        return run_and_count([suite for suite in SUITES if suite.name in wanted], args.verbose)
    except KeyboardInterrupt:
        print("The tests were stopped; nothing is counted.", file=sys.stderr)
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
