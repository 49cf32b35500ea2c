"""Leads a soak: starts everybody, kills some at random, and lets everything end."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass

import smdebug
from crew import Member, stuck
from ledger import losses, read_account
from scene import read_step
from stage import PROGRAM, Stage

TURN_SECS = 0.25
SAMPLE_SECS = 1.0
# Between two kills, between a kill and the next life, between two calls of diagnose.
KILL_SECS = (1.0, 4.0)
DEAD_SECS = (0.0, 2.0)
DIAGNOSE_SECS = (5.0, 15.0)
# Runs of the recorder that begins a new one again and again are checked and removed, except the last.
KEPT_CYCLES = 2
READY_SECS = 60.0
# A turn that takes longer means that the conductor itself was stopped, and likely everybody.
PAUSE_SECS = 5.0
# A member that ends so often by itself is broken; there is no point in going on.
MOST_OWN_ENDS = 5


@dataclass
class Outage:
    """When a server could not be reached, by the clock on the wall."""

    server: str
    begin: float
    end: float


class Conductor:
    """One soak. What it found lies in its members."""

    def __init__(self, stage: Stage, dice: random.Random, patience_secs: float) -> None:
        self.stage = stage
        self.patience_secs = patience_secs
        self.problems: list[str] = []
        self.outages: list[Outage] = []
        self.diagnoses = 0
        self.cycles = 0
        self.cycle_steps = 0
        self.paused_secs = 0.0
        self._dice = dice
        self._diagnosis: subprocess.Popen[bytes] | None = None
        self._diagnosis_begin = 0.0
        self._diagnosed = ""
        self._own_ends = 0
        self._dead: dict[str, float] = {}

    def conduct(self, secs: float) -> None:
        """Everything from the first start to the last end."""
        for member in self.stage.members:
            if member in self.stage.visitors:
                continue
            member.start()
        for server in self.stage.servers:
            self._await_server(server)
        for visitor in self.stage.visitors:
            visitor.start()
        try:
            self._disturb(secs)
            self._finish()
        finally:
            for member in self.stage.members:
                if member.is_running:
                    member.kill()
            if self._diagnosis is not None and self._diagnosis.poll() is None:
                self._diagnosis.kill()
                self._diagnosis.wait()

    # ---- while it lasts

    def _disturb(self, secs: float) -> None:
        begin = time.monotonic()
        next_kill = begin + self._dice.uniform(*KILL_SECS)
        next_sample = begin
        next_diagnosis = begin + self._dice.uniform(*DIAGNOSE_SECS)
        last = begin
        while (now := time.monotonic()) < begin + secs and self._own_ends < MOST_OWN_ENDS:
            self._notice_pause(now - last)
            last = now
            self._revive(now)
            if now >= next_kill:
                self._kill_one(now)
                next_kill = now + self._dice.uniform(*KILL_SECS)
            if now >= next_sample:
                for member in self.stage.members:
                    member.sample(now)
                self._look_for_trouble()
                self._clear_cycles(KEPT_CYCLES)
                next_sample = now + SAMPLE_SECS
            if now >= next_diagnosis and self._diagnosis is None:
                self._diagnose()
                next_diagnosis = now + self._dice.uniform(*DIAGNOSE_SECS)
            self._end_diagnosis()
            time.sleep(TURN_SECS)

    def _notice_pause(self, turn_secs: float) -> None:
        if turn_secs > PAUSE_SECS:
            for member in self.stage.members:
                member.forgive(turn_secs)
        stopped = [member for member in self.stage.members if member.is_stopped]
        if turn_secs > PAUSE_SECS or stopped:
            now = time.time()
            for server in self.stage.ports:
                self.outages.append(Outage(server, now - turn_secs, now))
            self.paused_secs += turn_secs

    def _kill_one(self, now: float) -> None:
        alive = [m for m in self.stage.members if m.is_running and not m.is_spared]
        if not alive:
            return
        member = self._dice.choice(alive)
        if member.name in self.stage.ports:
            self.outages.append(Outage(member.name, time.time(), float("inf")))
        member.kill()
        self._dead[member.name] = now + self._dice.uniform(*DEAD_SECS)

    def _revive(self, now: float, at_once: bool = False) -> None:
        for name, due in list(self._dead.items()):
            if now < due and not at_once:
                continue
            del self._dead[name]
            member = self.stage.member(name)
            member.start()
            if name in self.stage.ports:
                self._await_server(member)
                for outage in self.outages:
                    if outage.server == name:
                        outage.end = min(outage.end, time.time())

    def _await_server(self, member: Member) -> None:
        deadline = time.monotonic() + READY_SECS
        while time.monotonic() < deadline:
            try:
                address = ("127.0.0.1", self.stage.ports[member.name])
                socket.create_connection(address, timeout=5).close()
                return
            except OSError:
                time.sleep(0.05)
        self.problems.append(f"{member.name} was not ready after {READY_SECS:.0f} s")

    def _look_for_trouble(self) -> None:
        for member in self.stage.members:
            if member.name in self._dead:
                continue
            ended = member.ended_by_itself()
            if ended:
                self.problems.append(f"{member.name} {ended}")
                self._own_ends += 1
                member.start()
        for problem in stuck(self.stage.members, self.patience_secs):
            self.problems.append(problem)
            member = self.stage.member(problem.split()[0])
            member.kill()
            member.start()

    def _diagnose(self) -> None:
        recording = self._dice.choice(self.stage.recordings)
        if not read_account(self.stage.ledger(recording)).steps:
            return
        with (self.stage.folder / "diagnose.log").open("ab") as log:
            self._diagnosis = subprocess.Popen(
                [PROGRAM, "diagnose", "--json", "--fail-on", "never", recording.uri],
                stdout=subprocess.DEVNULL,
                stderr=log,
                env={**os.environ, **self.stage.environment},
            )
        self._diagnosed = recording.name
        self._diagnosis_begin = time.monotonic()

    def _end_diagnosis(self) -> None:
        if self._diagnosis is None:
            return
        code = self._diagnosis.poll()
        if code is None:
            if time.monotonic() - self._diagnosis_begin <= self.patience_secs:
                return
            self._diagnosis.kill()
            code = self._diagnosis.wait()
        if code != 0:
            log = (self.stage.folder / "diagnose.log").read_text(errors="replace")[-500:]
            self.problems.append(f"diagnose of {self._diagnosed} ended with {code}: {log}")
        self.diagnoses += 1
        self._diagnosis = None

    def _clear_cycles(self, kept: int) -> None:
        """Checks and removes runs that have ended, except the last ones."""
        stem = self.stage.ledger(self.stage.cycle).stem
        ledgers = sorted(self.stage.ledgers.glob(f"{stem}-*.jsonl"))
        for path in ledgers[: len(ledgers) - kept]:
            account = read_account(path)
            run = self.stage.runs / path.stem
            if not account.is_closed:
                self.problems.append(f"{path.stem} has a successor and has not ended")
            trial = smdebug.create_trial(run)
            found = losses(account, lambda step, trial=trial: read_step(trial, step)[1])
            self.problems += [f"{path.stem}: {problem}" for problem in found]
            self.cycles += 1
            self.cycle_steps += len(account.steps)
            shutil.rmtree(run)
            path.unlink()

    # ---- the end

    def _finish(self) -> None:
        self._revive(time.monotonic(), at_once=True)
        # A recorder that has just begun must know how to end.
        deadline = time.monotonic() + self.patience_secs
        while any(not r.has_begun() for r in self.stage.recorders) and time.monotonic() < deadline:
            time.sleep(TURN_SECS)
        for recorder in self.stage.recorders:
            recorder.life.process.send_signal(signal.SIGTERM)
        for member in [*self.stage.recorders, *self.stage.readers]:
            self._expect_end(member)
        for visitor in self.stage.visitors:
            visitor.life.process.send_signal(signal.SIGTERM)
            self._expect_end(visitor)
        for server in self.stage.servers:
            server.life.process.send_signal(signal.SIGINT)
            self._expect_end(server, (0, 130))
        while self._diagnosis is not None:
            self._end_diagnosis()
            time.sleep(TURN_SECS)
        self._clear_cycles(0)

    def _expect_end(self, member: Member, codes: tuple[int, ...] = (0,)) -> None:
        code = member.wait(self.patience_secs)
        if code is None:
            self.problems.append(
                f"{member.name} did not end in {self.patience_secs:.0f} s: {member.last_words()}"
            )
        elif code not in codes and not (member.name == "watch" and code == 1):
            self.problems.append(f"{member.name} ended with {code}: {member.last_words()}")
