"""Judges a soak that is over, and prints what it was."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import gauge
import scene
import smdebug
from conductor import Conductor, Outage
from crew import Member
from ledger import losses, read_account
from programs import Cases
from stage import PROGRAM, Recording, Stage

# Before and after an outage, requests that were under way may fail.
SLACK_SECS = 5.0
SHOWN = 5


def machine_kind() -> str:
    """Processors and date, for the record."""
    text = Path("/proc/cpuinfo").read_text()
    model = re.search(r"^model name\s*:\s*(.*)$", text, re.M)
    kind = f"{os.cpu_count()} cores ({model[1] if model else 'unknown'})"
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {kind}"


def lost_steps(stage: Stage, recording: Recording) -> tuple[int, list[str]]:
    """How many steps were reported, and which of them are not as they were."""
    account = read_account(stage.ledger(recording))
    if not account.steps:
        return 0, ["no step was reported"]
    trial = smdebug.create_trial(recording.uri)
    problems = losses(account, lambda step: scene.read_step(trial, step)[1])
    if not account.is_closed:
        problems.append("the run was not ended")
    elif not trial.training_ended():
        problems.append("the run has ended, and readers do not see it")
    return len(account.steps), problems


def unexplained(failures: Iterable[tuple[float, str]], outages: list[Outage]) -> list[str]:
    """Failures of visitors at times when their server was there."""
    return [
        what
        for at, what in failures
        if not any(o.begin - SLACK_SECS <= at <= o.end + SLACK_SECS for o in outages)
    ]


def read_failures(path: Path) -> list[tuple[float, str]]:
    """What visitors wrote; one that was killed may have left half a line."""
    text = path.read_text() if path.exists() else ""
    found = []
    for line in text.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        found.append((entry["at"], entry["what"]))
    return found


def wrong_lines(output: Path) -> list[str]:
    """Steps that a reader complained about."""
    return [line for line in output.read_text().splitlines() if line.startswith("step ")]


def wrong_losses(output: Path) -> tuple[int, list[str]]:
    """Steps that `smdebug tail` printed, and those with another loss than was saved."""
    steps, wrong = 0, []
    for line in output.read_text().splitlines():
        try:
            document = json.loads(line)
        except ValueError:
            continue  # a life that was killed may have left half a line
        if "step" not in document:
            continue
        steps += 1
        step = document["step"]
        number = document["numbers"].get(scene.LOSS)
        if number != scene.loss(step):
            wrong.append(f"step {step}: {number}")
    return steps, wrong


def damage(stage: Stage, recording: Recording) -> list[str]:
    """What `smdebug verify --deep` finds in a run."""
    done = subprocess.run(
        [PROGRAM, "verify", "--deep", recording.uri],
        capture_output=True,
        text=True,
        env={**os.environ, **stage.environment},
        check=False,
    )
    return [] if done.returncode == 0 else [done.stdout + done.stderr]


def growth_line(member: Member) -> str:
    """The longest life of a member in numbers."""
    life = max(member.lives, key=lambda life: life.samples.duration_secs).samples
    text = f"{member.name:26} {len(member.lives):5} {member.kills:5} {life.duration_secs:7.0f}"
    if len(life.secs) < 3:
        return text
    text += f" {life.rss_mib[0]:8.1f} {life.rss_mib[-1]:8.1f} {life.files[-1]:6}"
    if gauge.is_judged(life):
        text += f" {gauge.growth_per_minute(life.secs, life.rss_mib):+9.2f}"
        text += f" {gauge.growth_per_minute(life.secs, [float(n) for n in life.files]):+9.2f}"
    return text


def judge(stage: Stage, conductor: Conductor) -> int:
    """Prints all checks and the numbers; the exit status."""
    os.environ.update(stage.environment)
    cases = Cases()
    cases.record("nothing went wrong on the way", conductor.problems)
    for recording in stage.recordings:
        count, problems = lost_steps(stage, recording)
        shown = problems[:SHOWN] + ([f"{len(problems)} in all"] if len(problems) > SHOWN else [])
        cases.record(f"steps of '{recording.name}' that were reported", shown, f"{count} steps")
        cases.record(f"files of '{recording.name}'", damage(stage, recording))
    few = [] if conductor.cycles else ["no run was ended"]
    note = f"{conductor.cycles} runs with {conductor.cycle_steps} steps"
    cases.record("runs that were ended and removed", few, note)
    for recording in stage.recordings:
        lines = wrong_lines(stage.folder / f"reader-{recording.name}.out")
        cases.record(f"what the reader of '{recording.name}' saw", lines[:SHOWN])
    steps, wrong = wrong_losses(stage.folder / "tail.out")
    none = [] if steps else ["it printed no step"]
    cases.record("what tail printed", none + wrong[:SHOWN], f"{steps} steps")
    for server in stage.ports:
        failures = read_failures(stage.failures(server))
        outages = [outage for outage in conductor.outages if outage.server == server]
        found = unexplained(failures, outages)
        kills = stage.member(server).kills
        note = f"{len(failures)} failures around {kills} kills"
        cases.record(f"what visitors of '{server}' saw", found[:SHOWN], note)
    for member in stage.members:
        cases.record(f"memory and files of {member.name}", member.leaks())
    print(f"{'process':26} {'lives':>5} {'kills':>5} {'longest':>7} {'MiB from':>8} {'to':>8} "
          f"{'files':>6} {'MiB/min':>9} {'files/min':>9}")  # fmt: skip
    for member in stage.members:
        print(growth_line(member))
    kills = sum(member.kills for member in stage.members)
    cases.record("processes were killed", [] if kills else ["none was"], f"{kills} kills")
    print(f"{conductor.diagnoses} calls of diagnose")
    if conductor.paused_secs:
        print(f"somebody else stopped processes for {conductor.paused_secs:.0f} s")
    return cases.finish()
