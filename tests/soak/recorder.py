"""A recorder of a soak: records until it is told to end, and keeps a ledger of what is saved.

    recorder.py RUN LEDGER HEARTBEAT --number N --layout LAYOUT [--durable] [--rules]
                [--pause-secs S] [--steps-per-run N]

Goes on after the last step that its ledger has. SIGTERM ends the run. With --steps-per-run a run ends
after so many steps and the next begins beside it: RUN and LEDGER get a number.
"""

from __future__ import annotations

import argparse
import itertools
import os
import signal
import time
from collections import deque
from pathlib import Path

import scene
import smdebug
from heartbeat import Heartbeat
from ledger import Ledger

RULES = [{"rule": "ExplodingTensor"}, {"rule": "LossNotDecreasing"}]

is_told_to_end = False


def end(*_: object) -> None:
    """The handler of SIGTERM."""
    global is_told_to_end
    is_told_to_end = True


def make_hook(run: str, args: argparse.Namespace) -> smdebug.Hook:
    """A hook with one collection of raw values and one of statistics."""
    hook = smdebug.Hook(
        run,
        layout=args.layout,
        save_config=smdebug.SaveConfig(save_interval=1),
        include_regex=["^(mark|layers|gradient|outputs|big)"],
        include_collections=["reduced"],
        durable="step" if args.durable else "off",
        rules=RULES if args.rules else (),
        flight_recorder=8 if args.rules else 0,
    )
    reduced = hook.get_collection("reduced")
    reduced.include("^reduced/")
    reduced.reduction_config = smdebug.ReductionConfig(reductions=["min", "max", "mean"])
    return hook


def save_step(hook: smdebug.Hook, number: int, life: int, step: int) -> int:
    """Saves a step; its checksum."""
    hook.set_mode(smdebug.modes.EVAL if step % 10 == 9 else smdebug.modes.TRAIN)
    with hook.step(step):
        for name, array in (
            scene.raw(number, life, step) | scene.reduced(number, life, step)
        ).items():
            hook.save(name, array)
        hook.save_scalar("loss", scene.loss(step))
    return scene.expected_checksum(number, life, step)


def has_ended(run: str) -> bool:
    """Whether a run in a folder is complete."""
    return (Path(run) / "training_job_end.ts").exists()


def record(run: str, ledger: Ledger, args: argparse.Namespace, heartbeat: Heartbeat) -> None:
    """One run, from where its ledger ends until it is complete or we are told to end."""
    if args.steps_per_run and has_ended(run):  # the life before was killed before it could say so
        ledger.close()
        return
    hook = make_hook(run, args)
    waiting: deque[tuple[int, int]] = deque()
    reported = 0
    last = args.steps_per_run or 1 << 62
    for step in range(ledger.next_step, last):
        waiting.append((step, save_step(hook, args.number, ledger.life, step)))
        while reported < hook.committed_steps:
            ledger.report(*waiting.popleft())
            reported += 1
        heartbeat.beat()
        if is_told_to_end:
            break
        time.sleep(args.pause_secs)  # the pace of a training; nothing depends on it
    hook.close()
    for entry in waiting:
        ledger.report(*entry)
    ledger.close()


def main() -> None:
    """Records run after run, or one without end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("ledger", type=Path)
    parser.add_argument("heartbeat", type=Path)
    parser.add_argument("--number", type=int, required=True)
    parser.add_argument("--layout", choices=["original", "packed"], required=True)
    parser.add_argument("--durable", action="store_true")
    parser.add_argument("--rules", action="store_true")
    parser.add_argument("--pause-secs", type=float, default=0.05)
    parser.add_argument("--steps-per-run", type=int)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, end)
    heartbeat = Heartbeat(args.heartbeat)
    if args.steps_per_run is None:
        record(args.run, Ledger(args.ledger), args, heartbeat)
        return
    # Ledgers of runs that were checked are removed by others, so the first free number is no new one.
    taken = sorted(args.ledger.parent.glob(f"{args.ledger.stem}-*{args.ledger.suffix}"))
    first = int(taken[-1].stem.rpartition("-")[2]) if taken else 0
    for turn in itertools.count(first):
        if is_told_to_end:
            return
        ledger = Ledger(args.ledger.with_stem(f"{args.ledger.stem}-{turn:04}"))
        if not ledger.is_closed:
            record(f"{args.run}-{turn:04}", ledger, args, heartbeat)


if __name__ == "__main__":
    os.environ.setdefault("SMDEBUG_STRICT", "1")
    main()
