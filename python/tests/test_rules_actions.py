"""Actions: their JSON, their options, and what they do, with real files and programs."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

import pytest
import recorded
from smdebug import run_control
from smdebug.exceptions import SMDebugError
from smdebug.rules.action import (
    SMS,
    Action,
    ActionFailed,
    Actions,
    Checkpoint,
    Command,
    Email,
    File,
    Log,
    SaveNow,
    StopTraining,
    Webhook,
)
from smdebug.rules.action.action import ALLOWED_ACTIONS
from smdebug.rules.hit import Hit


@pytest.fixture
def hit(tmp_path: Path) -> Hit:
    run = tmp_path / "run"
    run.mkdir()
    return Hit("Above", 7, "Too high.", "TRAIN", 3, run="run", path=str(run), time=12.5)


class Counted(Action):
    """Counts; fails while it is told to."""

    def __init__(self, fails: bool = False, **options):
        super().__init__(**options)
        self.fails = fails
        self.done = []

    def intent(self, hit):
        return "count"

    def perform(self, hit):
        if self.fails:
            raise ActionFailed("It was told to fail.")
        self.done.append(hit.step)
        return "It counted."


# --- the description


def made(text: str) -> list[Action]:
    return Actions(text, "Above")._actions


def test_one_object_or_a_list_is_accepted(tmp_path):
    assert made("") == made("  ") == made("[]") == []
    assert [type(a) for a in made('{"name": "log"}')] == [Log]
    both = json.dumps([{"name": "Log"}, {"NAME": "FILE", "Path": str(tmp_path / "Hits.JSONL")}])
    log, file = made(both)
    assert isinstance(log, Log) and isinstance(file, File)
    assert file.path == str(tmp_path / "Hits.JSONL")  # only names lose their case
    assert log.rule_name == "Above"


def test_every_local_action_has_a_name(tmp_path):
    described = [
        {"name": "stoptraining", "local": True, "mode": "signal", "grace_s": "1.5"},
        {"name": "email", "local": True, "endpoint": "A.b@Example.org", "host": "mail"},
        {"name": "sms", "local": "true", "endpoint": "+4912345", "webhook": "http://gate"},
        {"name": "webhook", "url": "https://example.org/Hook", "headers": {"X-A": "b"}},
        {"name": "command", "argv": ["echo", "Hi"], "timeout_s": 5},
        {"name": "log", "level": "error", "min_severity": "critical"},
        {"name": "file", "path": "hits.jsonl", "max_fires": "3"},
        {"name": "savenow", "collections": "weights, losses", "steps": 2},
        {"name": "checkpoint", "cooldown_s": 60, "dry_run": "yes"},
    ]
    actions = made(json.dumps(described))
    wanted = [StopTraining, Email, SMS, Webhook, Command, Log, File, SaveNow, Checkpoint]
    assert [type(action) for action in actions] == wanted
    stop, mail, sms, hook, command, log, file, save, checkpoint = actions
    assert (stop.mode, stop.grace_s, stop.max_fires) == ("signal", 1.5, 1)
    assert (mail.email_address, mail.host, mail.port) == ("A.b@Example.org", "mail", 587)
    assert sms.phone_number == "+4912345" and sms.transport.url == "http://gate"
    assert hook.url == "https://example.org/Hook" and hook.headers == {"X-A": "b"}
    assert command.argv == ["echo", "Hi"] and command.timeout_s == 5.0
    assert log.min_severity == "critical" and file.max_fires == 3
    assert save.collections == ["weights", "losses"] and save.steps == 2
    assert checkpoint.cooldown_s == 60.0 and checkpoint.dry_run
    assert ALLOWED_ACTIONS == ["stoptraining", "sms", "email"]


@pytest.mark.parametrize(
    ("described", "complaint"),
    [
        ("5", "An object with a name was expected, not 5"),
        ('{"level": "info"}', "There is no action ''"),
        ('{"name": "webhok", "url": "http://a"}', "Did you mean 'webhook'?"),
        ('{"name": "sms"}', "needs the key 'endpoint'"),
        ('{"name": "email", "endpoint": 7}', "needs the key 'endpoint'"),
        ('{"name": "stoptraining"}', "needs the key 'training_job_prefix'"),
        ('{"name": "stoptraining", "training_job_prefix": " "}', "needs the key"),
        ('{"name": "log", "levl": "info"}', "no key 'levl'; there are level"),
        ('{"name": "log", "level": "loud"}', "level must be one of debug"),
        ('{"name": "log", "cooldown_s": -1}', "cooldown_s must be a number from 0 on"),
        ('{"name": "log", "max_fires": "many"}', "max_fires must be a number, not 'many'"),
        ('{"name": "log", "min_severity": "bad"}', "one of info, warning, error, critical"),
        ('{"name": "log", "dry_run": "perhaps"}', "dry_run must be true or false"),
        ('{"name": "log", "local": "perhaps"}', "local must be true or false"),
        ('{"name": "file"}', "path"),
        ('{"name": "file", "path": " "}', "path must not be empty"),
        ('{"name": "webhook", "url": "ftp://a"}', "must begin with http:// or https://"),
        ('{"name": "webhook", "url": "http://a", "headers": 1}', "headers must be"),
        ('{"name": "webhook", "url": "http://a", "attempts": 0}', "at least 1"),
        ('{"name": "command", "argv": "rm -rf x"}', "argv must be a list"),
        ('{"name": "command", "argv": []}', "argv must name a program"),
        ('{"name": "savenow", "collections": []}', "at least one collection"),
        ('{"name": "savenow", "collections": [1]}', "must be names"),
        ('{"name": "email", "local": 1, "endpoint": "nobody"}', "address of a mailbox"),
        ('{"name": "email", "local": 1, "endpoint": "a@b", "tls": "ssl"}', "tls must be one"),
        ('{"name": "email", "local": 1, "endpoint": "a.b@c.org", "compat": 1}', "mailbox"),
        ('{"name": "sms", "local": 1, "endpoint": "0123"}', "must be + and 1 to 15 digits"),
        ('{"name": "sms", "local": 1, "endpoint": "+1", "webhook": 5}', "Settings by name"),
        ('{"name": "stoptraining", "local": 1, "mode": "kill"}', "cooperative, signal, both"),
        ('{"name": "stoptraining", "local": 1, "training_job_prefix": "a/b"}', "hyphens"),
    ],
)
def test_a_malformed_action_is_logged_and_skipped(described, complaint, messages):
    actions = made(f'[{described}, {{"name": "log"}}]')
    assert [type(action) for action in actions] == [Log]
    assert messages.containing(complaint), messages.lines
    assert messages.containing("An action of rule Above is skipped.")


def test_objects_are_accepted_instead_of_text():
    log, file = Log(), File("x")
    assert Actions(log, "R")._actions == [log]
    assert Actions([log, file], "R")._actions == [log, file]
    assert Actions(None, "R")._actions == []
    for wrong in (5, [5], {"name": "log"}):
        with pytest.raises(SMDebugError):
            Actions(wrong, "R")


def test_text_of_the_sdk_is_accepted():
    class OfTheSdk:
        def serialize(self):
            return '[{\\"level\\": \\"info\\", \\"name\\": \\"log\\"}]'

    (action,) = Actions(OfTheSdk(), "R")._actions
    assert isinstance(action, Log) and action.level == "info"


def test_invalid_json_is_refused():
    with pytest.raises(ValueError, match="Expecting"):
        made('{"name": ')


# --- when actions act


def test_actions_run_in_order_and_a_failure_stays_its_own(hit, messages):
    first, broken, last = Counted(), Counted(fails=True), Counted()
    Actions([first, broken, last], "Above").invoke("", hit)
    assert first.done == last.done == [7]
    assert messages.containing("Action Counted of rule Above failed: It was told to fail.")


def test_any_exception_of_an_action_is_logged(hit, messages):
    class Broken(Counted):
        def perform(self, hit):
            return 1 / 0

    Broken().invoke("", hit)
    assert messages.containing("ZeroDivisionError: division by zero")
    Counted().invoke("", Hit("R", 1, severity="fatal"))
    assert messages.containing("one of info, warning, error, critical, not 'fatal'")


def test_a_cooldown_holds_an_action_back(hit):
    action, now = Counted(cooldown_s=10), [100.0]
    action._now_secs = lambda: now[0]
    for now[0] in (100, 109.9, 110, 119, 121):
        action.invoke("", hit)
    assert len(action.done) == 3


def test_an_action_acts_at_most_max_fires_times(hit):
    action = Counted(max_fires=2)
    for _ in range(4):
        action.invoke("", hit)
    assert len(action.done) == 2
    unlimited = Counted()
    for _ in range(40):
        unlimited.invoke("", hit)
    assert len(unlimited.done) == 40


def test_a_failure_is_tried_again_at_the_next_hit(hit):
    action = Counted(fails=True, max_fires=1, cooldown_s=1000)
    action.invoke("", hit)
    action.fails = False
    action.invoke("", hit)
    action.invoke("", hit)
    assert action.done == [7]


def test_hits_below_the_severity_are_ignored(hit):
    action = Counted(min_severity="error")
    for severity in ("info", "warning", "error", "critical"):
        action.invoke("", Hit("R", 1, severity=severity))
    assert len(action.done) == 2


def test_a_dry_run_only_says_what_would_happen(hit, messages):
    action = Counted(dry_run=True)
    action.invoke("", hit)
    assert action.done == []
    assert messages.containing("Action Counted of rule Above: It would count.")


def test_runs_of_other_hosts_are_left_alone(hit, messages):
    record = run_control.announce(hit.path)
    action = Counted()
    action.invoke("", hit)
    assert action.done == [7]
    path = Path(hit.path, "control.smd/process_0.json")
    fields = json.loads(path.read_text())
    path.write_text(json.dumps({**fields, "host": "elsewhere"}))
    assert not run_control.records(hit.path)[0].is_of_this_host and record.is_of_this_host
    action.invoke("", hit)
    assert action.done == [7]
    assert messages.containing("the run is not known to be of this host")
    allowed = Counted(any_host=True)
    allowed.invoke("", hit)
    assert allowed.done == [7]
    stored = Counted()
    stored.invoke("", Hit("R", 1, path="s3://bucket/run"))
    assert stored.done == []


# --- log, file, requests


def test_log_writes_a_line(hit, messages):
    Log("critical").invoke("", hit)
    assert ("CRITICAL", "SMDebugRule:Above fired. Too high.") in messages.lines


def test_file_appends_one_line_of_json_per_hit(hit, tmp_path, messages):
    path = tmp_path / "deep" / "hits.jsonl"
    action = File(path)
    action.invoke("", hit)
    action.invoke("", hit)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0] == lines[1] == hit.record()
    assert lines[0]["rule"] == "Above" and lines[0]["mode_step"] == 3 and lines[0]["time"] == 12.5
    File(tmp_path).invoke("", hit)
    assert messages.containing("Action File of rule Above failed: IsADirectoryError")


def test_many_processes_append_whole_lines(tmp_path):
    path = tmp_path / "hits.jsonl"
    code = """
import sys
from smdebug.rules.action import File
from smdebug.rules.hit import Hit
action = File(sys.argv[1])
for step in range(200):
    action.perform(Hit("R", step, "x" * 3000))
"""
    running = [recorded.start(code, path) for _ in range(4)]
    for process in running:
        _, errors = process.communicate(timeout=recorded.TIMEOUT_SECS)
        assert process.returncode == 0, errors
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted(line["step"] for line in lines) == sorted(list(range(200)) * 4)


def test_requests_are_left_in_the_run(hit, messages):
    SaveNow(["weights", "losses"], steps=3).invoke("", hit)
    Checkpoint().invoke("", hit)
    asked = run_control.asked(hit.path, "save_now")
    assert asked["collections"] == ["weights", "losses"] and asked["steps"] == 3
    assert (asked["rule"], asked["step"], asked["message"]) == ("Above", 7, "Too high.")
    assert run_control.asked(hit.path, "checkpoint")["rule"] == "Above"
    Checkpoint(any_host=True).invoke("", Hit("R", 1, path="s3://bucket/run"))
    assert messages.containing("A request can be left in a local run only")


# --- programs


@pytest.fixture
def default_sigpipe():
    """As in programs that set it so, such as those of the command line."""
    before = signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGPIPE, before)


def test_a_program_gets_the_hit(hit, tmp_path):
    code = (
        "import json, os, sys;"
        "names = ('RULE', 'STEP', 'MESSAGE', 'RUN');"
        "values = [os.environ['SMDEBUG_' + name] for name in names];"
        "json.dump([json.load(sys.stdin), values, sys.argv[2:]], open(sys.argv[1], 'w'))"
    )
    out = tmp_path / "out.json"
    Command([sys.executable, "-c", code, str(out), "$HOME; rm *"]).invoke("", hit)
    record, variables, arguments = json.loads(out.read_text())
    assert record == hit.record()
    assert variables == ["Above", "7", "Too high.", "run"]
    assert arguments == ["$HOME; rm *"]  # no shell


def test_a_peer_that_goes_away_ends_the_action_only(hit, messages, default_sigpipe):
    class Writing(Counted):
        def perform(self, hit):
            read, write = os.pipe()
            os.close(read)
            with os.fdopen(write, "wb", buffering=0) as pipe:
                pipe.write(b"x")

    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    Writing().invoke("", hit)
    assert messages.containing("BrokenPipeError")
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
    # The program of a command is not told to ignore it.
    code = "import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    Command([sys.executable, "-c", code]).invoke("", hit)
    assert messages.containing("exited with 0. set()")


def test_the_end_of_a_program_is_logged(hit, messages):
    Command([sys.executable, "-c", "print('well done')"]).invoke("", hit)
    assert messages.containing("exited with 0. well done")
    Command([sys.executable, "-c", "import sys; sys.exit('broken')"]).invoke("", hit)
    assert messages.containing("failed") and messages.containing("exited with 1. broken")
    Command(["/no/such/program"]).invoke("", hit)
    assert messages.containing("FileNotFoundError")


def test_a_program_that_does_not_read_is_no_failure(hit, messages, default_sigpipe):
    large = Hit(**{**vars(hit), "message": "x" * 1_000_000})
    Command(["true"]).invoke("", large)
    assert messages.containing("true exited with 0.")


def test_a_program_that_hangs_is_killed_with_its_children(hit, messages, tmp_path):
    pid_file = tmp_path / "pid"
    script = f"sleep 1000 & echo $! > {pid_file}; wait"
    Command(["sh", "-c", script], timeout_s=2).invoke("", hit)
    assert messages.containing("sh was killed after 2 s.")
    child = int(pid_file.read_text())
    pause = threading.Event()
    for _ in range(2000):  # killed, but perhaps not gone yet
        if run_control.start_ticks(child) is None:
            break
        pause.wait(0.005)
    assert run_control.start_ticks(child) is None


def test_nothing_of_actions_is_imported_with_the_package():
    code = "import sys, smdebug; print([m for m in sys.modules if m.startswith('smdebug.rules')])"
    assert recorded.run(code).strip() == "[]"
    code = "import sys, smdebug.rules; print([m for m in sys.modules if m in ('botocore', 'ray')])"
    assert recorded.run(code, **{"HOME": os.environ.get("HOME", "")}).strip() == "[]"
