"""The reference page of the command line is what the program says of itself."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("SMDEBUG_PROGRAM", ROOT / "build/dev/smdebug"))


def test_the_page_is_fresh():
    done = subprocess.run(
        [PROGRAM, "help", "--markdown"], capture_output=True, text=True, check=True, timeout=60
    )
    page = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    assert page == done.stdout, "run: build/dev/smdebug help --markdown > docs/reference/cli.md"
