#!/usr/bin/env python3
"""Writes docs/reference/rules: a page for each built-in rule, and their index.

    tools/rule_pages.py                       # texts, from the constants of the rules
    tools/rule_pages.py --check               # exit code 1 if a text is old or a picture is missing
    tools/rule_pages.py --pictures [RULE …]   # pictures, too: records runs and lets the rules judge

A picture shows what its rule sees in a recorded training of the fault bench, sick and healthy; it
is drawn only if the rule speaks about the one and not about the other. Needs a build.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "bench"), str(ROOT / "tools")]
os.environ.update(SMDEBUG_TRAINING_END_DELAY_REFRESH="0")
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

from faults.case import Case, faulty_cases, plain_case  # noqa: E402
from faults.catalogue import FAULTS  # noqa: E402
from faults.library import Library  # noqa: E402
from rule_pictures import HEALTHY_RUN, PICTURES, WITHOUT_PICTURE, Picture  # noqa: E402
from smdebug import _core  # noqa: E402

PROGRAM = Path(os.environ.get("SMDEBUG_PROGRAM", ROOT / "build/dev/smdebug"))
PAGES = ROOT / "docs/reference/rules"
PICTURES_FOLDER = ROOT / "docs/images/rules"
INDEX = "README.md"
LONGEST_LINE = 200
LONGEST_CODE = 100
SEED = 1


# --- texts


def prose(text: str) -> str:
    """One sentence per line, names with underscores as code."""
    text = text.replace("<", "&lt;").replace("*", r"\*")
    text = re.sub(r"\b\w+_\w+\b", r"`\g<0>`", text)
    sentences = re.split(r"(?<=[.!?:]) (?=[A-Z`])", text)
    return "\n".join(line for one in sentences for line in textwrap.wrap(one, LONGEST_LINE))


def code(text: str) -> str:
    """A code span inside of a table."""
    return "`" + text.replace("|", r"\|") + "`" if text else "–"


def parameter_table(parameters: list[dict[str, Any]]) -> str:
    lines = ["| name | type | default | meaning |", "|---|---|---|---|"]
    for one in parameters:
        notes = [prose(one["help"]).replace("\n", " ").replace("|", r"\|")]
        if one["range"]:
            notes.append(f"In `{one['range']}`.")
        if one["choices"]:
            notes.append("One of " + ", ".join(f"`{c}`" for c in one["choices"].split()) + ".")
        if one["aliases"]:
            notes.append("Also " + ", ".join(f"`{a}`" for a in one["aliases"].split()) + ".")
        if one["is_extension"]:
            notes.append("*Ours.*")
        row = [code(one["name"]), one["type"], code(one["default"]), " ".join(notes)]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def collection_json(rule: dict[str, Any]) -> str:
    configurations = [
        {"CollectionName": one["name"], "CollectionParameters": one["parameters"]}
        for one in rule["collections"]
    ]
    rows = ",\n".join(f"    {json.dumps(one)}" for one in configurations)
    return f'{{\n  "CollectionConfigurations": [\n{rows}\n  ]\n}}'


def save_config(parameters: dict[str, str]) -> str:
    settings = []
    if "save_interval" in parameters:
        settings.append(f"save_interval={int(parameters['save_interval'])}")
    if "save_steps" in parameters:
        steps = [int(step) for step in parameters["save_steps"].split(",")]
        settings.append(f"save_steps={steps}")
    return f"smdebug.SaveConfig({', '.join(settings)})"


def raw_text(pattern: str) -> str:
    """A pattern as Python code."""
    return f'r"{pattern}"' if '"' not in pattern else repr(pattern)


def hook_call(collections: list[str]) -> list[str]:
    """As the formatter writes it."""
    line = f'hook = smdebug.Hook("runs/first", include_collections={json.dumps(collections)})'
    if len(line) <= LONGEST_CODE:
        return [line]
    names = [f"        {json.dumps(name)}," for name in collections]
    return [
        "hook = smdebug.Hook(",
        '    "runs/first",',
        "    include_collections=[",
        *names,
        "    ],",
        ")",
    ]


def snippet(rule: dict[str, Any]) -> str:
    lines = ["import smdebug", ""]
    if not rule["collections"]:
        return "\n".join([*lines, 'hook = smdebug.Hook("runs/first", include_regex=".*")'])
    names = [one["name"] for one in rule["collections"]]
    lines += hook_call(names)
    for one in rule["collections"]:
        parameters = one["parameters"]
        lines.append(f"collection = hook.get_collection({json.dumps(one['name'])})")
        if "include_regex" in parameters:
            lines.append(f"collection.include({raw_text(parameters['include_regex'])})")
        lines.append(f"collection.save_config = {save_config(parameters)}")
    return "\n".join(lines)


def fault_name(picture: Picture) -> str:
    if picture.recording is not None:
        return picture.form
    fault = next(fault for fault in FAULTS if fault.number == picture.fault)
    return f"{fault.name}{f' ({picture.form})' if picture.form else ''}"


def case_name(picture: Picture) -> str:
    return f"{fault_name(picture)}, {picture.trainer}"


def picture_section(rule: dict[str, Any]) -> list[str]:
    picture = PICTURES.get(rule["name"])
    if picture is None:
        reason = WITHOUT_PICTURE.get(rule["name"])
        return [] if reason is None else ["## Sick and healthy", "", prose(reason), ""]
    base = os.path.relpath(PICTURES_FOLDER, PAGES)
    name = rule["snake_name"]
    lines = ["## Sick and healthy", ""]
    given = ", ".join(
        f"the healthy run as `{key}`" if value == HEALTHY_RUN else f"`{key}={value}`"
        for key, value in picture.parameters.items()
    )
    source = (
        "Two trainings of [the fault bench](../../dev/fault-bench.md)"
        if picture.recording is None
        else f"Two trainings of a {picture.trainer}"
    )
    lines += [
        f"{source}, recorded and judged by this " + (f"rule with {given}." if given else "rule.")
    ]
    lines += [
        f"The first has the fault “{fault_name(picture)}”, and the red line is the first hit;"
        " about the second the rule says nothing.",
        "",
        f"![What {rule['name']} sees in a sick run]({base}/{name}_sick.svg)",
        "",
        f"![The same in a healthy run]({base}/{name}_healthy.svg)",
        "",
    ]
    return lines


def page(rule: dict[str, Any]) -> str:
    """The text of one rule's page."""
    lines = [
        f"# {rule['name']}",
        "",
        "<!-- written by tools/rule_pages.py -->",
        "",
        prose(rule["summary"]),
        f"Severity {rule['severity']}; for {rule['group']}.",
        "",
    ]
    for title, key in (("What it sees", "sees"), ("Why it matters", "why"), ("What to do", "fix")):
        lines += [f"## {title}", "", prose(rule[key]), ""]
    lines += picture_section(rule)
    lines += ["## Parameters", ""]
    if rule["parameters"]:
        lines += [parameter_table(rule["parameters"]), ""]
    lines += [f"Every rule also has [these]({INDEX}#parameters-of-all-rules).", ""]
    lines += ["## What to save", ""]
    if rule["collections"]:
        lines += ["As JSON:", "", "```json", collection_json(rule), "```", "", "In Python:"]
    else:
        lines += [
            "The rule asks for no collection of its own: save what it is to look at, such as everything."
        ]
    lines += ["", "```python", snippet(rule), "```", ""]
    lines += ["Then:", "", "```sh", f"smdebug diagnose runs/first --rules {rule['name']}", "```"]
    return "\n".join(lines) + "\n"


def index(table: list[dict[str, Any]]) -> str:
    lines = [
        "# Built-in rules",
        "",
        "<!-- written by tools/rule_pages.py -->",
        "",
        "`smdebug diagnose` and `smdebug watch` evaluate all of them; [the guide](../../guide/diagnose.md) shows how.",
        "In Python each is a class of `smdebug.rules`, see [rules and actions](../rules.md).",
        "",
        "| rule | severity | for | finds |",
        "|---|---|---|---|",
    ]
    for rule in table:
        finds = prose(rule["summary"]).replace("\n", " ")
        link = f"[{rule['name']}]({rule['snake_name']}.md)"
        lines.append(f"| {link} | {rule['severity']} | {rule['group']} | {finds} |")
    lines += [
        "",
        "## Parameters of all rules",
        "",
        "*Ours* means that the original does not know the parameter.",
        "Values may be texts, as configuration files have them.",
        "",
        parameter_table(_core.shared_rule_parameters()),
    ]
    return "\n".join(lines) + "\n"


def texts() -> dict[Path, str]:
    """All pages by their path."""
    table = _core.rule_table()
    pages = {PAGES / f"{rule['snake_name']}.md": page(rule) for rule in table}
    pages[PAGES / INDEX] = index(table)
    return pages


# --- pictures


def picture_files(rule: dict[str, Any], folder: Path = PICTURES_FOLDER) -> tuple[Path, Path]:
    name = rule["snake_name"]
    return folder / f"{name}_sick.svg", folder / f"{name}_healthy.svg"


def picture_titles(rule: dict[str, Any]) -> tuple[str, str]:
    """What the pictures say they are, without what they show."""
    picture = PICTURES[rule["name"]]
    return f"Sick: {case_name(picture)}", f"Healthy: {picture.trainer}"


def sick_case(picture: Picture) -> Case:
    return next(
        case
        for case in faulty_cases(SEED)
        if case.fault is not None
        and case.form is not None
        and case.fault.number == picture.fault
        and case.trainer == picture.trainer
        and case.form.name == picture.form
    )


def smdebug(*arguments: object) -> str:
    done = subprocess.run(
        [PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    if done.returncode > 1:
        raise SystemExit(f"rule_pages: {done.stderr.strip()}")
    return done.stdout


def findings(
    run: Path, healthy_run: Path, rule: dict[str, Any], picture: Picture
) -> list[dict[str, Any]]:
    given = [
        f"--param={rule['name']}.{key}={healthy_run if value == HEALTHY_RUN else value}"
        for key, value in picture.parameters.items()
    ]
    answer = json.loads(smdebug("diagnose", run, "--json", "--rules", rule["name"], *given))
    if answer["not_evaluated"] or answer["failed"]:
        raise SystemExit(f"rule_pages: {rule['name']} could not judge {run}: {answer}")
    return answer["findings"]


def recorded_runs(rule: dict[str, Any], library: Library) -> tuple[Path, Path]:
    """A sick and a healthy one."""
    picture = PICTURES[rule["name"]]
    if picture.recording is not None:
        sick, healthy = (library.root / f"{rule['snake_name']}_{s}" for s in ("sick", "healthy"))
        picture.recording(sick, is_sick=True)
        picture.recording(healthy, is_sick=False)
        return sick, healthy
    cases = sick_case(picture), plain_case(picture.trainer, SEED)
    for case in cases:
        library.evidence(case)
    return library.run(cases[0]), library.run(cases[1])


def draw(rule: dict[str, Any], library: Library, folder: Path) -> None:
    """Records, judges and draws both runs of a rule."""
    picture = PICTURES[rule["name"]]
    runs = recorded_runs(rule, library)
    found = findings(*runs, rule, picture)
    if not found:
        raise SystemExit(f"rule_pages: {rule['name']} says nothing about {case_name(picture)}.")
    if findings(runs[1], runs[1], rule, picture):
        raise SystemExit(f"rule_pages: {rule['name']} speaks about a healthy run.")
    first = found[0]
    violation = first["evidence"]["violations"][0]
    tensor = picture.tensor or violation["tensor"]
    statistic = violation["metric"] if violation["metric"] in statistics() else ""
    reduction = picture.reduction or statistic
    mode = picture.mode or first["first"]["mode"]
    arguments: list[object] = ["--mode", mode.lower()] if mode != "GLOBAL" else []
    arguments += ["--reduction", reduction] if reduction else []
    arguments += ["--log"] if picture.log else []
    if statistic and reduction == statistic:
        arguments += ["--threshold", violation["threshold"]]
    tensors = tensor, picture.healthy_tensor or tensor
    marks: list[list[object]] = [["--mark", first["first"]["mode_step"]], []]
    for run, shown, file, title, mark in zip(
        runs, tensors, picture_files(rule, folder), picture_titles(rule), marks, strict=True
    ):
        title += f": {shown} ({reduction})" if reduction else f": {shown}"
        smdebug("plot", run, shown, *arguments, *mark, "--svg", file, "--title", title)


def statistics() -> set[str]:
    names = {name for name, _ in _core.reduction_names()}
    return names | {f"abs_{name}" for name in names}


def draw_all(names: list[str], folder: Path = PICTURES_FOLDER) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as runs:
        for rule in _core.rule_table():
            if rule["name"] in PICTURES and (not names or rule["name"] in names):
                draw(rule, Library(Path(runs)), folder)


# --- the command


def check() -> list[str]:
    """What is old or missing, in sentences."""
    wanted = texts()
    problems = [
        f"{path.relative_to(ROOT)} is old; run tools/rule_pages.py."
        for path, text in wanted.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    problems += [
        f"{path.relative_to(ROOT)} is about no rule."
        for path in sorted(PAGES.glob("*.md"))
        if path not in wanted
    ]
    for rule in _core.rule_table():
        if rule["name"] not in PICTURES:
            if rule["name"] not in WITHOUT_PICTURE:
                problems.append(f"{rule['name']} has neither a picture nor a reason to have none.")
            continue
        for file, title in zip(picture_files(rule), picture_titles(rule), strict=True):
            if not file.exists() or f"<title>{title}: " not in file.read_text(encoding="utf-8"):
                problems.append(
                    f"{file.relative_to(ROOT)} is missing or of another run;"
                    f" run tools/rule_pages.py --pictures {rule['name']}."
                )
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only tell what is old")
    parser.add_argument("--pictures", nargs="*", metavar="RULE", help="draw pictures, too")
    arguments = parser.parse_args()
    if not arguments.check:
        PAGES.mkdir(parents=True, exist_ok=True)
        for path, text in texts().items():
            path.write_text(text, encoding="utf-8")
        if arguments.pictures is not None:
            draw_all(arguments.pictures)
    problems = check()
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
