"""Every built-in rule has a page that says what its constants say, and pictures that are true."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from markdown_examples import check_examples

pytest.importorskip("smdebug._core")

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import rule_pages  # noqa: E402
from smdebug import _core  # noqa: E402

RULES = {rule["name"]: rule for rule in _core.rule_table()}
TITLE = re.compile(r"<title>([^<]*)</title>")


def test_pages_are_fresh_and_pictures_are_there():
    assert rule_pages.check() == []


def test_a_rule_without_a_page_or_a_picture_is_found(monkeypatch):
    table = [*_core.rule_table(), {**RULES["Overfit"], "name": "MyRule", "snake_name": "my_rule"}]
    monkeypatch.setattr(rule_pages._core, "rule_table", lambda: table)
    problems = rule_pages.check()
    assert "docs/reference/rules/my_rule.md is old; run tools/rule_pages.py." in problems
    assert "MyRule has neither a picture nor a reason to have none." in problems


def test_every_page_has_a_picture_or_says_why_not():
    for name, rule in RULES.items():
        page = rule_pages.page(rule)
        assert "## Sick and healthy" in page, name
        assert ("_sick.svg" in page) != (name in rule_pages.WITHOUT_PICTURE), name


@pytest.mark.parametrize("name", sorted(RULES))
def test_snippets_of_a_page_run(name, tmp_path):
    check_examples(rule_pages.PAGES / f"{RULES[name]['snake_name']}.md", tmp_path)


@pytest.mark.parametrize("name", sorted(set(rule_pages.PICTURES) & set(RULES)))
def test_pictures_can_be_made_again(name, tmp_path):
    """The runs are recorded and judged anew; numbers may differ between machines."""
    rule_pages.draw_all([name], tmp_path)
    made = rule_pages.picture_files(RULES[name], tmp_path)
    kept = rule_pages.picture_files(RULES[name])
    for new, old in zip(made, kept, strict=True):
        texts = new.read_text(encoding="utf-8"), old.read_text(encoding="utf-8")
        assert TITLE.findall(texts[0]) == TITLE.findall(texts[1])
        assert all("curve s0" in text for text in texts)
    assert 'class="mark"' in kept[0].read_text(encoding="utf-8")
    assert 'class="mark"' not in kept[1].read_text(encoding="utf-8")


def test_any_rule_of_the_table_gets_a_page(tmp_path, monkeypatch):
    rule = {
        "name": "MyRule",
        "snake_name": "my_rule",
        "group": "trees",
        "severity": "info",
        "summary": "Finds <odd> things.",
        "sees": "One. Two with a_name.",
        "why": "Because.",
        "fix": "Try again.",
        "parameters": [
            {
                **{"name": "pattern", "type": "str", "default": "a|b", "help": "A pattern."},
                **{"range": "", "choices": "a b", "aliases": "old", "is_extension": True},
            }
        ],
        "collections": [
            {"name": "inputs", "parameters": {"include_regex": ".*in\\d", "save_interval": "5"}},
            {"name": "hyperparameters", "parameters": {"save_steps": "0,2"}},
        ],
    }
    page = rule_pages.page(rule)
    assert "Finds &lt;odd> things.\nSeverity info; for trees." in page
    assert "One.\nTwo with `a_name`." in page
    assert "| `pattern` | str | `a\\|b` | A pattern. One of `a`, `b`. Also `old`. *Ours.* |" in page
    assert 'collection.include(r".*in\\d")' in page
    assert "save_config = smdebug.SaveConfig(save_steps=[0, 2])" in page
    assert "Sick and healthy" not in page
    script = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    exec(script, found)
    assert found["hook"].get_collection("inputs").include_regex == [".*in\\d"]
    found["hook"].close()
