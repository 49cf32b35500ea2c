"""A leak is told from noise and from what a process takes when it starts."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys

import gauge
import pytest

DICE = random.Random(1)


def samples(memory_mib: list[float], files: list[int] | None = None) -> gauge.Samples:
    """One sample a second."""
    found = gauge.Samples()
    for second, value in enumerate(memory_mib):
        found.add(float(second), value, files[second] if files else 5)
    return found


def noisy(value: float) -> float:
    return value + DICE.uniform(-2, 2)


def test_a_process_that_fills_its_caches_and_stays_there_is_well() -> None:
    warm = [noisy(20 + min(second, 100) * 3) for second in range(600)]
    assert gauge.leaks(samples(warm)) == []


def test_a_leak_below_the_noise_of_a_second_is_found() -> None:
    leaking = [noisy(100 + second * 0.05) for second in range(600)]
    [problem] = gauge.leaks(samples(leaking))
    assert problem.startswith("memory grows by")


def test_files_that_are_never_closed_are_found() -> None:
    files = [5 + second // 30 for second in range(600)]
    [problem] = gauge.leaks(samples([50.0] * 600, files))
    assert problem.startswith("open files grow by")


def test_files_that_come_and_go_are_well() -> None:
    files = [5 + second % 3 for second in range(600)]
    assert gauge.leaks(samples([50.0] * 600, files)) == []


def test_a_short_life_is_not_judged() -> None:
    assert not gauge.is_judged(samples([1.0, 100.0]))
    assert gauge.is_judged(samples([1.0] * 600))


def test_the_numbers_of_a_process_are_those_of_the_kernel() -> None:
    before = gauge.measure(os.getpid())
    block = b"x" * (64 << 20)
    with open(os.devnull):
        after = gauge.measure(os.getpid())
    assert before is not None and after is not None
    assert 60 < after[0] - before[0] < 70, len(block)
    assert after[1] == before[1] + 1


@pytest.fixture
def child() -> subprocess.Popen[bytes]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_a_stopped_process_is_told_from_one_that_waits(child: subprocess.Popen[bytes]) -> None:
    assert not gauge.is_stopped(child.pid)
    child.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED)
    assert gauge.is_stopped(child.pid)


def test_a_process_that_is_gone_has_no_numbers(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()
    assert gauge.measure(child.pid) is None
    assert gauge.cpu_ticks(child.pid) is None
