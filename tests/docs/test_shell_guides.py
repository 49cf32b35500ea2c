"""Guides that show commands show what these print."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_examples import FENCE, ROOT, examples_of, run_examples

PROGRAM = Path(os.environ.get("SMDEBUG_PROGRAM", ROOT / "build/dev/smdebug"))
GUIDES = {"ci": 4, "command-line": 8, "diagnose": 3}
MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")


def commands(guide: Path) -> list[tuple[str, str]]:
    """Shell blocks, each with the text block after it."""
    blocks = [match.groups() for match in FENCE.finditer(guide.read_text(encoding="utf-8"))]
    return [
        (content, blocks[i + 1][1])
        for i, (language, content) in enumerate(blocks[:-1])
        if language == "shell" and blocks[i + 1][0] == "text"
    ]


def words(text: str) -> list[str]:
    """What counts of an output: a terminal wraps long lines, and a run is recorded now."""
    return MOMENT.sub("TIME", text).split()


@pytest.mark.parametrize("name", GUIDES)
def test_commands_print_what_is_shown(name, tmp_path):
    guide = ROOT / f"docs/guide/{name}.md"
    run_examples(examples_of(guide), tmp_path, f"docs/guide/{name}.md")
    shown = commands(guide)
    assert len(shown) == GUIDES[name]
    path = f"{PROGRAM.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    for command, output in shown:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "python")},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert words(done.stdout or done.stderr) == words(output), command
