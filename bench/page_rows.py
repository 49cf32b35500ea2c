"""The rows of the table about the page: the first view beside TensorBoard's, and many clients.

The first view counts from the start of the program: for ours until the overview of all tensors has
arrived, for TensorBoard until it lists all tags and has given the points of one. Both without a browser.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "build/dev/smdebug"
DEV_PYTHON = ROOT / ".venvs/dev/bin/python"
PATIENCE_SECS = 600
POLL_SECS = 0.02

Line = tuple[str, str, str, str, str]


def get(address: str) -> bytes | None:
    """The body; None while nobody answers."""
    try:
        with urllib.request.urlopen(address, timeout=PATIENCE_SECS) as answer:
            body: bytes = answer.read()
            return body
    except (urllib.error.URLError, ConnectionError):
        return None


def until(condition: Callable[[], bool]) -> None:
    """Waits for it."""
    deadline = time.monotonic() + PATIENCE_SECS
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit("bench: the first view did not come.")
        time.sleep(POLL_SECS)


def our_first_view(run: Path, steps: int) -> float:
    """Seconds from the start of the server to the overview of the whole run."""
    begin = time.monotonic()
    server = subprocess.Popen(
        [str(PROGRAM), "serve", "--json", "--port", "0", str(run)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        address = json.loads(server.stdout.readline())["address"].rstrip("/")
        get(address + "/")
        until(lambda: json.loads(get(f"{address}/api/runs") or b"")["runs"][0]["steps"] == steps)
        base = f"{address}/api/runs/{quote(run.name)}"
        for what in ("", "/tensors", "/heatmap?statistic=l2&role=gradient&rows=600&columns=1100"):
            if get(base + what) is None:
                raise SystemExit(f"bench: {base + what} was not answered.")
        return time.monotonic() - begin
    finally:
        server.terminate()
        server.wait()


def free_port() -> int:
    """A port that nobody has at present."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def their_first_view(board: Path, tags: int) -> float:
    """Seconds from the start of TensorBoard to the points of one tag, with all tags listed."""
    address = f"http://127.0.0.1:{(port := free_port())}/data/plugin/scalars"
    begin = time.monotonic()
    server = subprocess.Popen(
        [
            str(ROOT / ".venvs/tensorboard/bin/tensorboard"),
            *("--logdir", str(board), "--host", "127.0.0.1", "--port", str(port)),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    found: dict[str, dict] = {}

    def has_all() -> bool:
        found.clear()
        found.update(json.loads(get(f"{address}/tags") or b"{}"))
        return sum(map(len, found.values())) >= tags

    try:
        until(has_all)
        [(run, of_run), *_] = found.items()
        get(f"{address}/scalars?run={quote(run)}&tag={quote(next(iter(of_run)))}")
        return time.monotonic() - begin
    finally:
        server.terminate()
        server.wait()


def first_view(base: Path, quick: bool, text: Callable[[float], str]) -> Line:
    """The same content in both."""
    tensors, steps = (1000, 50) if quick else (12_000, 200)
    run, board = base / "page", base / "page-board"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    record = [DEV_PYTHON, ROOT / "tests/browser/record.py", "wide", run]
    subprocess.run(
        [*map(str, record), "--tensors", str(tensors), "--steps", str(steps)],
        env=environment,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    convert = [str(PROGRAM), "tensorboard", str(run), "--out", str(board)]
    subprocess.run(convert, stdout=subprocess.DEVNULL, check=True)
    ours = min(our_first_view(run, steps) for _ in range(3))
    theirs = their_first_view(board, tensors)
    what = f"first view of {tensors:,} tensors at {steps} steps, from the start of the server"
    return (what, text(ours), f"{text(theirs)} (TensorBoard)", f"{theirs / ours:.0f}×", "< 1 s")


def many_clients(quick: bool, text: Callable[[float], str]) -> list[Line]:
    """Clients beside a training."""
    command = [str(DEV_PYTHON), str(ROOT / "tests/load/run.py"), "--json"]
    done = subprocess.run(
        [*command, "--seconds", "5" if quick else "30"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    if not re.match(r"\{", done.stdout):
        raise SystemExit(f"bench: tests/load/run.py ended with {done.returncode}.")
    found = json.loads(done.stdout)
    alone, served = found["step_alone"], found["step_served"]
    who = f"{found['clients']} clients of the server"
    return [
        (
            f"a training step beside {who}",
            text(served),
            f"{text(alone)} (alone)",
            f"{served / alone - 1:+.1%}",
            "noise",
        ),
        (
            f"{who}: an answer, at {found['answers_per_sec']:.0f} a second",
            text(found["answer_median"]),
            "",
            f"{len(found['errors'])} errors",
            "no error",
        ),
        (f"{who}: its memory", f"{found['server_most_mib']:.0f} MiB", "", "", "≤ 1024 MiB"),
    ]


def lines(base: Path, quick: bool, text: Callable[[float], str]) -> list[Line]:
    """All rows; `text` shows seconds."""
    return [first_view(base, quick, text), *many_clients(quick, text)]
