"""The documentation of sessions is true and complete."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from smdebug.hook import BaseHook
from smdebug.tensorflow.session import SessionHook

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/guide/tensorflow-sessions.md"
# Examples switch a whole process to graphs.
CHECK = """
import sys
from pathlib import Path
from markdown_examples import check_examples
check_examples(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def test_the_examples_of_the_guide_print_what_is_shown(tmp_path: Path) -> None:
    paths = [str(ROOT / "python"), str(ROOT / "tests/support")]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {paths}\n{CHECK}", PAGE, tmp_path],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_reference_names_every_member_and_collection() -> None:
    page = (ROOT / "docs/reference/tensorflow-sessions.md").read_text(encoding="utf-8")
    code = " ".join(re.findall(r"`[^`]+`", page))
    names = {name for name in set(dir(SessionHook)) - set(dir(BaseHook)) if name[0] != "_"}
    names -= {"after_create_session"}  # as sessions have it
    names |= {name for name, _, _ in SessionHook.builtin_collections}
    assert {name for name in names if not re.search(rf"\b{name}\b", code)} == set()
