"""The documentation of sessions is true and complete."""

from __future__ import annotations

import re
from pathlib import Path

from markdown_examples import check_examples
from smdebug.hook import BaseHook
from smdebug.tensorflow.session import SessionHook

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/guide/tensorflow-sessions.md"


def test_the_examples_of_the_guide_print_what_is_shown(tmp_path: Path) -> None:
    check_examples(PAGE, tmp_path)


def test_the_reference_names_every_member_and_collection() -> None:
    page = (ROOT / "docs/reference/tensorflow-sessions.md").read_text(encoding="utf-8")
    code = " ".join(re.findall(r"`[^`]+`", page))
    names = {name for name in set(dir(SessionHook)) - set(dir(BaseHook)) if name[0] != "_"}
    names -= {"after_create_session"}  # as sessions have it
    names |= {name for name, _, _ in SessionHook.builtin_collections}
    assert {name for name in names if not re.search(rf"\b{name}\b", code)} == set()


def test_the_quick_start_prints_what_is_shown(tmp_path: Path) -> None:
    check_examples(ROOT / "docs/guide/quick-start.md", tmp_path, "Sessions of TensorFlow")
