"""Makes broken runs and probes each in a process of its own, with little memory and little time.

prober.py GOOD_RUN VERIFY_PROGRAM FIRST STRIDE [NAME…] prints one JSON document per case and line.
"""

from __future__ import annotations

import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import cases
import pyarrow.compute
import pyarrow.csv  # noqa: F401  (once, not in every child)
import smdebug.frame
import smdebug.summary  # noqa: F401
from probe import Probe

CASE_SECS = 40
NOBODY = 65534


def baseline_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def in_child(case: cases.Case, run: Path, out: Path, check: bool, pipe: int) -> None:
    """Probes, sends the report through the pipe and ends the process."""
    limit = baseline_bytes() + (case.mib << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if os.geteuid() == 0 and case.name.endswith("without_rights"):
        os.seteuid(NOBODY)
    signal.alarm(CASE_SECS)
    probe = Probe(case, run, out)
    try:
        probe.all(check)
    except BaseException as error:
        probe.failures.append(f"The probe itself failed: {error!r}")
    with os.fdopen(pipe, "wb") as file:
        file.write(json.dumps(probe.report()).encode())


def probe_in_child(case: cases.Case, run: Path, out: Path, check: bool) -> dict[str, Any]:
    """The report of a forked child; what ended it, if there is none."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            in_child(case, run, out, check, writing)
        finally:
            os._exit(0)
    os.close(writing)
    received = bytearray()
    deadline = time.monotonic() + CASE_SECS + 5
    while select.select([reading], [], [], max(0.0, deadline - time.monotonic()))[0]:
        piece = os.read(reading, 1 << 20)
        if not piece:
            break
        received += piece
    else:
        os.kill(child, signal.SIGKILL)
    os.close(reading)
    _, status = os.waitpid(child, 0)
    try:
        report: dict[str, Any] = json.loads(received)
    except ValueError:
        code = os.waitstatus_to_exitcode(status)
        return {"failures": [f"The process ended with {code} and no report."], "messages": []}
    return report


def verify(program: str, run: Path) -> dict[str, Any]:
    """What `smdebug verify` makes of the run."""
    try:
        done = subprocess.run(
            [program, "verify", "--deep", "--json", str(run)],
            capture_output=True,
            timeout=CASE_SECS,
        )
    except subprocess.TimeoutExpired:
        return {"code": -1, "failure": "It did not end."}
    answer: dict[str, Any] = {"code": done.returncode}
    try:
        if done.returncode in (0, 1):
            answer["damage"] = json.loads(done.stdout.decode())["damage"]
        else:
            answer["message"] = done.stderr.decode()
    except (ValueError, KeyError) as error:
        answer["failure"] = f"{error!r}: {done.stdout[:300]!r} {done.stderr[:300]!r}"
    if b"S3CRET" in done.stdout + done.stderr or b"root:x:0" in done.stdout + done.stderr:
        answer["failure"] = "It read what lies outside of the run."
    return answer


def examine(case: cases.Case, good: Path, program: str) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="hostile"))
    folder.chmod(0o755)
    started = time.monotonic()
    out = folder / "out"
    out.mkdir()
    out.chmod(0o777)
    document: dict[str, Any] = {"name": case.name, "probes": []}
    try:
        run = cases.make(case, good, folder)
        document["verify"] = verify(program, run)
        for check in case.checks:
            document["probes"].append(probe_in_child(case, run, out, check))
            if case.during is not None:
                shutil.rmtree(folder)
                folder.mkdir()
                out.mkdir()
                run = cases.make(case, good, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    document["secs"] = time.monotonic() - started
    return document


def main() -> None:
    good, program, first, stride, *names = sys.argv[1:]
    table = cases.by_name()
    chosen = names or list(table)[int(first) :: int(stride)]
    for name in chosen:
        print(json.dumps(examine(table[name], Path(good), program)), flush=True)


if __name__ == "__main__":
    main()
