"""Processes that are stuck or end by themselves are noticed; a kill is not their fault."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import gauge
import pytest
from crew import Member, stuck, told_size

HERE = Path(__file__).parent
BEATING = """
import sys, time
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from heartbeat import Heartbeat
heartbeat = Heartbeat(Path(sys.argv[1]))
while True:
    heartbeat.beat()
    time.sleep(0.01)
"""
PATIENCE_SECS = 60


@pytest.fixture
def made(tmp_path: Path) -> Iterator[list[Member]]:
    members: list[Member] = []
    yield members
    for member in members:
        if member.is_running:
            member.kill()


def start(made: list[Member], folder: Path, program: str) -> Member:
    words = [str(folder / "it.heartbeat"), str(HERE)]
    member = Member("it", [sys.executable, "-c", program, *words], folder)
    made.append(member)
    member.start()
    return member


def until_it_has_begun(member: Member) -> None:
    deadline = time.monotonic() + PATIENCE_SECS
    while not member.has_begun():
        assert time.monotonic() < deadline, member.last_words()
        time.sleep(0.01)


def test_a_process_with_a_heartbeat_is_not_stuck(made: list[Member], tmp_path: Path) -> None:
    member = start(made, tmp_path, BEATING)
    until_it_has_begun(member)
    member.silent_secs()
    path = tmp_path / "it.heartbeat"
    seen, deadline = path.read_bytes(), time.monotonic() + PATIENCE_SECS
    while path.read_bytes() == seen:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert stuck([member], 0) == []


def test_a_process_without_progress_is_stuck(made: list[Member], tmp_path: Path) -> None:
    member = start(made, tmp_path, "import time\ntime.sleep(1000)")
    member.silent_secs()
    time.sleep(0.3)
    [problem] = stuck([member], 0.2)
    assert problem.startswith("it made no progress")
    member.forgive(1000)
    assert stuck([member], 0.2) == []


def test_an_end_that_nobody_asked_for_is_told(made: list[Member], tmp_path: Path) -> None:
    member = start(made, tmp_path, "import sys\nsys.exit('out of luck')")
    assert member.wait(PATIENCE_SECS) == 1
    assert member.ended_by_itself() == "ended with 1: out of luck"


def test_a_kill_is_not_the_fault_of_the_process(made: list[Member], tmp_path: Path) -> None:
    member = start(made, tmp_path, BEATING)
    until_it_has_begun(member)
    member.kill()
    assert member.ended_by_itself() == ""
    assert (member.kills, member.is_running) == (1, False)
    member.start()
    until_it_has_begun(member)
    assert member.is_running


def test_a_process_that_does_not_end_in_time_is_told(made: list[Member], tmp_path: Path) -> None:
    member = start(made, tmp_path, BEATING)
    assert member.wait(0.1) is None
    assert not member.is_running


def test_a_leak_in_any_life_is_told(made: list[Member], tmp_path: Path) -> None:
    member = start(made, tmp_path, BEATING)
    member.kill()
    for second in range(300):
        member.life.samples.add(float(second), 10.0 + second, 5)
    member.start()
    assert member.leaks() == ["it: memory grows by 60.00 MiB a minute"]
    assert gauge.is_judged(member.lives[0].samples)


def test_a_process_may_tell_what_is_measured(tmp_path: Path) -> None:
    member = Member("tab", ["true"], tmp_path, measure=told_size)
    assert told_size(member) is None
    heartbeat = tmp_path / "tab.heartbeat"
    heartbeat.write_text("12 7\n")
    assert told_size(member) is None
    heartbeat.write_text("12 8 31.50\n")
    assert told_size(member) == (31.5, 0)
