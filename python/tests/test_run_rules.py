"""Many runs judged by many rules: the same outcomes on every executor."""

from __future__ import annotations

import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import judging
import numpy as np
import pytest
import writing
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.rules import rule_configs, run_rules
from smdebug.rules.executors import SerialExecutor
from smdebug.trials import create_trial

RULES = [
    judging.far_above,
    judging.Above,
    (judging.Above, {"threshold": 4}),
    judging.Broken,
]


def write(path: Path, first: int, end: bool = True) -> Path:
    for step in range(6):
        writing.step(path, step, w=np.full(2, first + step, np.float32))
    writing.collections(path)
    if end:
        writing.end(path)
    return path


@pytest.fixture
def runs(tmp_path):
    """Three runs, in no order."""
    return [write(tmp_path / name, first) for name, first in (("c", 0), ("a", 3), ("b", -9))]


def test_outcomes_say_what_was_found(runs):
    outcomes = run_rules(runs, RULES, SerialExecutor())
    assert [(Path(o.run).name, o.rule, o.status, o.steps) for o in outcomes] == [
        ("a", "Above", "NoIssuesFound", ()),
        ("a", "Above", "IssuesFound", (0, 1, 2, 3, 4, 5)),
        ("a", "Above", "IssuesFound", (2, 3, 4, 5)),
        ("a", "Broken", "Error", ()),
        ("b", "Above", "NoIssuesFound", ()),
        ("b", "Above", "NoIssuesFound", ()),
        ("b", "Above", "NoIssuesFound", ()),
        ("b", "Broken", "Error", ()),
        ("c", "Above", "NoIssuesFound", ()),
        ("c", "Above", "IssuesFound", (3, 4, 5)),
        ("c", "Above", "IssuesFound", (5,)),
        ("c", "Broken", "Error", ()),
    ]
    last = outcomes[10]
    assert last.hits[0]["violations"] == [{"tensor": "w", "value": 5.0, "op": ">", "threshold": 4}]
    assert last.hits[0]["mode"] == "TRAIN" and "time" not in last.hits[0]
    assert last.report["Datapoints"] == 6
    assert outcomes[-1].error == "ZeroDivisionError: of the rule"


def test_every_executor_gives_the_same_outcomes(runs):
    serial = run_rules(runs, RULES, SerialExecutor())
    with ThreadPoolExecutor(4) as threads:
        assert run_rules(runs, RULES, threads) == serial
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        assert run_rules(runs[::-1], RULES, processes) == serial
    assert run_rules(runs, RULES) == serial


def test_one_run_gives_the_same_outcomes_alone(runs):
    several = run_rules(runs, RULES, SerialExecutor())
    with ThreadPoolExecutor(4) as threads:
        alone = run_rules(runs[0], RULES, threads)
    assert alone == [outcome for outcome in several if outcome.run == str(runs[0])]
    assert run_rules(str(runs[0]), judging.Above, SerialExecutor()) == [alone[1]]


def test_the_same_run_is_judged_once(runs):
    assert len(run_rules([runs[0], str(runs[0])], judging.Above, SerialExecutor())) == 1
    assert run_rules([], RULES) == [] and run_rules(runs, []) == []


def test_a_trial_stands_for_its_place_and_range(runs):
    trial = create_trial(runs[0], name="mine", range_steps=(3, 5))
    (outcome,) = run_rules(trial, judging.Above, SerialExecutor())
    assert outcome.steps == (3, 4) and outcome.hits[0]["run"] == "mine"


def test_steps_can_be_limited(runs):
    (outcome,) = run_rules(runs[0], judging.Above, SerialExecutor(), start_step=4, end_step=5)
    assert outcome.steps == (4,)
    (outcome,) = run_rules(runs[0], judging.Above, SerialExecutor(), on_fire="stop")
    assert outcome.steps == (3,) and outcome.status == "IssuesFound"


def test_a_growing_run_is_judged_as_it_is_or_followed(tmp_path):
    run = write(tmp_path / "run", 0, end=False)
    (now,) = run_rules(run, judging.Above, SerialExecutor())
    assert now.steps == (3, 4, 5)
    with ThreadPoolExecutor(1) as threads:
        found = []
        follow = threading.Thread(
            target=lambda: found.extend(run_rules(run, judging.Above, threads, follow=True))
        )
        follow.start()
        writing.step(run, 10, w=np.full(2, 10, np.float32))
        writing.end(run)
        follow.join()
    assert found[0].steps == (3, 4, 5, 10)


def test_a_run_that_cannot_be_opened_is_an_outcome(tmp_path, runs):
    broken = tmp_path / "broken"
    broken.mkdir()
    writing.end(broken)
    outcomes = run_rules([broken, runs[0]], [judging.Above, judging.far_above], SerialExecutor())
    assert [(o.rule, o.status) for o in outcomes] == [
        ("Above", "Error"),
        ("far_above", "Error"),
        ("Above", "IssuesFound"),
        ("Above", "NoIssuesFound"),
    ]
    assert outcomes[0].error.startswith("MissingCollectionFiles: ")


def test_a_function_that_makes_no_rule_is_an_outcome(runs):
    (outcome,) = run_rules(runs[0], judging.no_rule, SerialExecutor())
    assert outcome.error == "SMDebugTypeError: no_rule made 'no rule', which is no rule."


def test_configurations_of_built_in_rules_are_accepted(runs):
    sources = [rule_configs.exploding_tensor(), "ExplodingTensor", {"rule": "exploding_tensor"}]
    outcomes = run_rules(runs[0], sources, SerialExecutor())
    assert [(o.rule, o.status) for o in outcomes] == [("ExplodingTensor", "NoIssuesFound")] * 3


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"rules": [5]}, SMDebugTypeError),
        ({"rules": [(judging.Above,)]}, SMDebugTypeError),
        ({"rules": [{}]}, SMDebugValueError),
        ({"runs": [5]}, SMDebugTypeError),
        ({"on_fire": "explode"}, SMDebugValueError),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(runs, arguments, error):
    given = {"runs": runs, "rules": RULES, "executor": SerialExecutor(), **arguments}
    with pytest.raises(error):
        run_rules(**given)


def test_what_a_serial_task_raises_is_raised_by_its_future():
    future = SerialExecutor().submit(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        future.result()
    assert SerialExecutor().submit(max, 1, 2).result() == 2
