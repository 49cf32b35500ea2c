"""Runs are recorded once, and again when they would differ."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from faults.case import Case, faulty_cases, plain_case
from faults.fault import Fault
from faults.injection import Ascend
from faults.library import Library


def faulty(number: int, trainer: str) -> Case:
    return next(
        c for c in faulty_cases(1) if c.fault and c.fault.number == number and c.trainer == trainer
    )


def test_second_filling_records_nothing(tmp_path: Path) -> None:
    shelf = Library(tmp_path / "runs")
    cases = [faulty(3, "mlp"), plain_case("circles", 1)]
    assert shelf.fill(cases, 1) == 2
    # The healthy twin of the faulty run is there, too.
    assert len(list(shelf.root.iterdir())) == 3
    assert shelf.fill(cases, 1) == 0
    assert all(shelf.is_real(case) for case in cases)


def test_what_is_said_about_a_fault_does_not_change_its_run(tmp_path: Path) -> None:
    shelf = Library(tmp_path)
    case = faulty(3, "mlp")
    assert isinstance(case.fault, Fault)
    renamed = replace(case, fault=replace(case.fault, expected=("Overfit",)))
    assert shelf.folder(renamed) == shelf.folder(case)


def test_other_settings_faults_and_seeds_have_other_runs(tmp_path: Path) -> None:
    shelf = Library(tmp_path)
    case = faulty(3, "mlp")
    assert case.form is not None
    onset = replace(case, form=replace(case.form, onset=51))
    settings = replace(case, form=replace(case.form, settings={"lr": 0.06}))
    injected = replace(case, form=replace(case.form, injection=faulty(8, "mlp").form.injection))
    later = replace(case, form=replace(case.form, injection=lambda: Ascend(51)))
    cases = [case, onset, settings, injected, later, replace(case, seed=3)]
    assert len({shelf.folder(one).name for one in cases}) == len(cases)


def test_interrupted_recording_is_made_again(tmp_path: Path) -> None:
    shelf = Library(tmp_path)
    case = plain_case("mlp", 1)
    shelf.folder(case).mkdir()
    (shelf.folder(case) / "rubbish").write_text("half a run")
    shelf.evidence(case)
    assert shelf.is_real(case)
    assert not (shelf.folder(case) / "rubbish").exists()
