"""The ledger survives the death of its writer, and its check finds what was lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from ledger import Account, Ledger, losses, read_account


def test_a_new_life_goes_on_after_the_last_report(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    first = Ledger(path)
    first.report(0, 10)
    first.report(1, 11)
    second = Ledger(path)
    assert (second.life, second.next_step, second.is_closed) == (2, 2, False)
    second.report(2, 12)
    second.close()
    account = read_account(path)
    assert account.steps == {0: 10, 1: 11, 2: 12}
    assert account.is_closed


def test_a_line_that_was_not_finished_counts_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    Ledger(path).report(0, 10)
    with path.open("a") as file:
        file.write('{"step": 1, "chec')
    assert read_account(path).steps == {0: 10}
    Ledger(path).report(1, 21)
    assert read_account(path).steps == {0: 10, 1: 21}


def test_the_last_report_of_a_step_counts(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    ledger = Ledger(path)
    ledger.report(0, 10)
    ledger.report(0, 20)
    assert read_account(path).steps == {0: 20}


def test_what_is_as_reported_is_no_loss() -> None:
    assert losses(Account(steps={0: 7, 1: 8}), {0: 7, 1: 8, 2: 9}.__getitem__) == []


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({0: 7}, "step 1 was reported, and cannot be read"),
        ({0: 7, 1: 9}, "step 1 was reported with other values"),
    ],
)
def test_a_loss_and_another_value_are_told(found: dict[int, int], said: str) -> None:
    [problem] = losses(Account(steps={0: 7, 1: 8}), found.__getitem__)
    assert problem.startswith(said)
