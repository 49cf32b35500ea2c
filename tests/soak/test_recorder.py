"""The recorder of a soak goes on wherever its last life was killed."""

import argparse

import recorder
from heartbeat import Heartbeat
from ledger import Ledger, read_account

STEPS = 4


def arguments() -> argparse.Namespace:
    return argparse.Namespace(
        number=3,
        layout="original",
        durable=True,
        rules=False,
        pause_secs=0.0,
        steps_per_run=STEPS,
    )


def record(tmp_path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    beat = Heartbeat(tmp_path / "heartbeat")
    recorder.record(str(tmp_path / "run"), ledger, arguments(), beat)


def test_a_run_is_recorded_and_reported_step_by_step(tmp_path):
    record(tmp_path)
    account = read_account(tmp_path / "ledger")
    assert sorted(account.steps) == list(range(STEPS))
    assert account.is_closed
    assert recorder.has_ended(str(tmp_path / "run"))


def test_a_life_that_was_killed_between_the_end_of_the_run_and_its_ledger_is_no_failure(tmp_path):
    record(tmp_path)
    ledger = tmp_path / "ledger"
    lines = [line for line in ledger.read_text().splitlines(True) if "closed" not in line]
    ledger.write_text("".join(lines[:-1]))  # nor had it reported the last step
    record(tmp_path)
    account = read_account(ledger)
    assert account.is_closed
    assert sorted(account.steps) == list(range(STEPS - 1))
