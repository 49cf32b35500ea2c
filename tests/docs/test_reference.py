"""The reference names everything that can be used, and its generated parts are fresh."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

_core = pytest.importorskip("smdebug._core")

import smdebug  # noqa: E402
from smdebug import exceptions  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
# For scripts that were written for the original; nothing happens.
NOT_DOCUMENTED = {"init_step", "record_trace_events"}
# How the adapters of frameworks set up their class.
FOR_ADAPTERS = {
    "builtin_collections",
    "default_collections",
    "default_save_interval",
    "manager_class",
}


def missing_from(page: str, names: set[str]) -> set[str]:
    """The names that do not stand as a word in any code span or block of a reference page."""
    text = (ROOT / "docs/reference" / page).read_text(encoding="utf-8")
    code = " ".join(re.findall(r"```.*?```|`[^`]+`", text, re.DOTALL))
    return {name for name in names if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", code)}


def public(thing: type) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


def source(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def test_hook_page_names_every_argument_and_member():
    arguments = set(inspect.signature(smdebug.Hook.__init__).parameters) - {"self"}
    assert missing_from("hook.md", arguments) == set()
    members = public(smdebug.Hook) - NOT_DOCUMENTED - FOR_ADAPTERS
    assert missing_from("hook.md", members) == set()


def test_config_pages_name_every_member():
    members = public(smdebug.SaveConfig) | public(smdebug.SaveConfigMode)
    methods = {"to_json_dict", "to_json", "from_json", "from_dict"}
    assert missing_from("save_config.md", members | methods) == set()
    settings = public(smdebug.ReductionConfig) - methods
    assert missing_from("reduction_config.md", settings) == set()
    kinds = {name for name, _ in _core.reduction_names()}
    assert missing_from("reduction_config.md", kinds) == set()


def test_collections_page_names_every_key_member_and_builtin_pattern():
    keys = {name for name in vars(smdebug.CollectionKeys) if name.isupper()}
    assert missing_from("collections.md", keys) == set()
    assert missing_from("collections.md", public(smdebug.Collection)) == set()
    text = source("docs/reference/collections.md")
    for name, patterns, _ in _core.PLAIN_COLLECTIONS:
        row = next(line for line in text.splitlines() if line.startswith(f"| `{name}` |"))
        assert all(f"`{pattern}`" in row for pattern in patterns)


def test_trial_page_names_every_member():
    from smdebug.diff import Diff
    from smdebug.frame import Frame
    from smdebug.tensor import StepState, Tensor
    from smdebug.trials import LocalTrial, S3Trial

    for thing in (LocalTrial, S3Trial, Tensor, Frame, Diff):
        assert missing_from("trial.md", public(thing)) == set()
    assert missing_from("trial.md", {state.name for state in StepState}) == set()
    arguments = set(inspect.signature(smdebug.create_trial).parameters) - {"kwargs"}
    arguments |= set(inspect.signature(LocalTrial.__init__).parameters) - {"self"}
    for method in (LocalTrial.frame, LocalTrial.diff):
        arguments |= set(inspect.signature(method).parameters) - {"self"}
    assert missing_from("trial.md", arguments) == set()


def test_exporters_page_names_every_setting_and_member():
    from smdebug.exporters import StepNumbers, mlflow, opentelemetry, wandb

    page = "../guide/exporters.md"
    for made in (
        mlflow.MLflowExporter,
        opentelemetry.OpenTelemetryExporter,
        wandb.WandbExporter,
    ):
        assert missing_from(page, set(inspect.signature(made).parameters)) == set()
    assert missing_from(page, set(StepNumbers.__slots__)) == set()
    assert missing_from(page, set(opentelemetry._GAUGES)) == set()


def test_rules_page_names_every_member_action_and_option():
    from smdebug import rules, run_control
    from smdebug.rules import action, evaluation
    from smdebug.rules.action import action as described
    from smdebug.rules.hit import SEVERITIES, Hit
    from smdebug.rules.rule import Rule

    page = "rules.md"
    assert missing_from(page, set(rules.__all__) | set(action.__all__) - {"Actions"}) == set()
    for made in described._LOCAL.values():
        arguments = set(inspect.signature(made.__init__).parameters) - {"self", "options"}
        assert missing_from(page, arguments | set(described._OPTIONS)) == set()
    assert missing_from(page, set(described._LOCAL) | set(SEVERITIES)) == set()
    functions = (rules.invoke_rule, rules.run_rules, rules.create_rule, rules.RequiredTensors.add)
    for function in functions:
        assert missing_from(page, set(inspect.signature(function).parameters) - {"self"}) == set()
    fields = {*Hit.__dataclass_fields__, *evaluation.Outcome.__dataclass_fields__}
    fields |= set(run_control.RunRecord.__dataclass_fields__) | set(run_control.REQUESTS)
    assert missing_from(page, fields) == set()
    members = public(Rule) | public(rules.RequiredTensors) | public(Hit) - {"parameters"}
    assert missing_from(page, members) == set()


def test_errors_page_names_every_exception():
    classes = {
        name
        for name, thing in vars(exceptions).items()
        if inspect.isclass(thing) and issubclass(thing, Exception) and not name.startswith("_")
    }
    assert missing_from("errors.md", classes) == set()
    codes = re.search(r"enum class ErrorCode \{(.*?)\};", source("smd/base/error.h"), re.DOTALL)
    assert (
        missing_from("errors.md", set(re.findall(r"^\s*(\w+),", codes[1], re.MULTILINE))) == set()
    )


def test_json_page_names_every_key():
    text = source("smd/config/hook_config.cpp")
    tables = re.findall(r"k\w*Keys = \{(.*?)\};", text, re.DOTALL)
    keys = set(re.findall(r'"(\w+)"', " ".join(tables)))
    assert len(keys) > 20
    assert missing_from("json.md", keys) == set()


def test_environment_page_names_every_variable():
    sources = [
        "smd/config/environment.h",
        "smd/config/environment.cpp",
        "smd/storage/s3/bucket.cpp",
        "smd/storage/s3/credentials.cpp",
        "smd/storage/s3/endpoint.cpp",
        "smd/storage/s3/profile.cpp",
        "python/smdebug/logger.py",
    ]
    names = set(re.findall(r'"([A-Z][A-Z0-9_]{3,})"', " ".join(map(source, sources))))
    names -= {"DELETE", "HEAD", "LIST", "POST"}  # requests
    assert len(names) > 15
    assert missing_from("environment.md", names - {"SMDEBUG_"}) == set()


def test_the_json_example_is_a_configuration_without_surprises(tmp_path, monkeypatch):
    block = re.search(r"```json\n(.*?)```", source("docs/reference/json.md"), re.DOTALL)
    (tmp_path / "config.json").write_text(block[1], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    warnings = []
    monkeypatch.setattr(smdebug.hook, "core_log", lambda level, message: warnings.append(message))
    hook = smdebug.Hook.create_from_json_file("config.json")
    assert warnings == []
    assert hook.out_dir == "runs/first"
    assert hook.save_config.get_save_config(smdebug.modes.TRAIN).save_interval == 10
    assert hook.get_collection("relu").save_config.get_save_config(smdebug.modes.EVAL).end_step == 0
    hook.close()
    smdebug.del_hook()


def test_the_examples_of_the_layout_are_fresh():
    pytest.importorskip("ml_dtypes")
    environment = {**os.environ}
    if any((ROOT / "python/smdebug").glob("_core*.so")):
        paths = [str(ROOT / "python"), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(paths)
    done = subprocess.run(
        [sys.executable, ROOT / "docs/format/examples.py"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
