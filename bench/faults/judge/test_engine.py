"""The engine as a program: what is asked, what is kept, what happens when a run cannot be read."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from faults.judge.alarm import Alarm
from faults.judge.engine import Engine, Question
from faults.judge.findings import documents, plain

# Answers like `smdebug diagnose --json` and notes each call; refuses runs called "broken".
PROGRAM = """#!{python}
import json, sys
from pathlib import Path
with open({log!r}, "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
runs = [a for a in sys.argv[1:] if a.startswith("/")]
if "DeadRelu.threshold=x" in sys.argv:
    print("'x' is not a number.", file=sys.stderr)
    sys.exit(2)
if any(r.endswith("broken") for r in runs):
    print("The run cannot be read.", file=sys.stderr)
    sys.exit(2)
for run in runs:
    finding = {{"rule": "DeadRelu", "severity": "warning", "message": "",
               "first": {{"step": 7, "mode": "TRAIN", "mode_step": 5}},
               "tensors": [{{"tensor": "relu_output_0", "first_step": 7, "hits": 2}}],
               "workers": ["worker_0"]}}
    print(json.dumps({{"run": run, "findings": [finding], "no_issues_found": ["Overfit"],
          "not_evaluated": [{{"rule": "LossSpike", "message": "x"}}],
          "failed": [{{"rule": "Confusion", "message": "y"}}]}}, indent=1))
sys.exit(1)
"""


class Fake:
    """A program that stands in for the real one, with a log of its calls."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "program"
        self.log = folder / "log"
        self.path.write_text(PROGRAM.format(python=sys.executable, log=str(self.log)))
        self.path.chmod(0o755)

    def calls(self) -> list[list[str]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    return Fake(tmp_path)


def engine_of(fake: Fake) -> Engine:
    engine = Engine(fake.path, fake.path.parent / "answers")
    assert engine.probe(Path("/runs/a")) == ""
    return engine


def test_findings_become_alarms(fake: Fake) -> None:
    engine = engine_of(fake)
    assert engine.rules == {"DeadRelu", "Overfit", "LossSpike", "Confusion"}
    assert "AllZero" in engine.lacking
    assert "DeadRelu" not in engine.lacking
    answers = engine.ask(Question("all", False), [Path("/runs/a"), Path("/runs/b")], 2)
    expected = Alarm("DeadRelu", "warning", 7, ("relu_output_0",), ("worker_0",))
    assert answers.alarms == {Path("/runs/a"): [expected], Path("/runs/b"): [expected]}
    assert answers.problems == ["runs: Confusion failed", "runs: Confusion failed"]


def test_only_known_rules_and_their_parameters_are_asked(fake: Fake) -> None:
    parameters = ("DeadRelu.compat=true", "AllZero.collection_names=gradients")
    engine_of(fake).ask(Question("originals", True, parameters), [Path("/runs/a")], 1)
    asked = fake.calls()[-1]
    assert sorted(asked[asked.index("--rules") + 1].split(",")) == [
        "Confusion",
        "DeadRelu",
        "Overfit",
    ]
    assert [asked[i + 1] for i, a in enumerate(asked) if a == "--param"] == ["DeadRelu.compat=true"]


def test_answers_are_kept_until_program_or_question_change(fake: Fake) -> None:
    engine = engine_of(fake)
    question = Question("all", False)
    engine.ask(question, [Path("/runs/a")], 1)
    before = len(fake.calls())
    assert engine.ask(question, [Path("/runs/a")], 1).asked == 0
    assert len(fake.calls()) == before
    assert engine.ask(Question("originals", True), [Path("/runs/a")], 1).asked == 1
    fake.path.write_text(fake.path.read_text() + "# newer\n")
    assert engine.ask(question, [Path("/runs/a")], 1).asked == 1


def test_one_unreadable_run_costs_only_itself(fake: Fake) -> None:
    runs = [Path("/runs/a"), Path("/runs/broken"), Path("/runs/c")]
    answers = engine_of(fake).ask(Question("all", False), runs, 1)
    assert [len(answers.alarms[run]) for run in runs] == [1, 0, 1]
    assert "runs: The run cannot be read." in answers.problems


def test_question_that_the_engine_refuses_is_told(fake: Fake) -> None:
    engine = engine_of(fake)
    bad = Question("bad", False, ("DeadRelu.threshold=x",))
    assert engine.refusal(bad, Path("/runs/a")) == "'x' is not a number."
    assert engine.refusal(Question("good", False), Path("/runs/a")) == ""


def test_missing_engine_is_explained(tmp_path: Path, fake: Fake) -> None:
    assert "no program" in Engine(tmp_path / "nothing", tmp_path).probe(Path("/runs/a"))
    reason = Engine(fake.path, tmp_path).probe(Path("/runs/broken"))
    assert reason == "The program does not diagnose: The run cannot be read."


def test_names_of_rules_are_compared_without_case_and_underscores() -> None:
    assert plain("dead_relu") == plain("DeadRelu")
    assert [d["a"] for d in documents('{"a": 1}\n {\n"a": 2}\n')] == [1, 2]
