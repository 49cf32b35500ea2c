"""The guide to diagnoses names every key of what the program prints."""

import json
import os
import re
import subprocess
from pathlib import Path

from markdown_examples import examples_of, run_examples

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("SMDEBUG_PROGRAM", ROOT / "build/dev/smdebug"))
GUIDE = ROOT / "docs/guide/diagnose.md"


def test_the_tables_name_every_key(tmp_path):
    run_examples(examples_of(GUIDE), tmp_path, "docs/guide/diagnose.md")
    done = subprocess.run(
        [PROGRAM, "diagnose", tmp_path / "runs/first", tmp_path / "none", "--json", "--save"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    first, second = map(json.loads, done.stdout.splitlines())
    guide = re.findall(r"`(\w+)`", GUIDE.read_text(encoding="utf-8"))
    keys = {*first, *second, *first["findings"][0], *first["findings"][0]["tensors"][0]}
    assert keys <= set(guide)
    page = (ROOT / "docs/format/findings.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)`", page)) | set(guide)
    lines = (tmp_path / "runs/first/findings/diagnose.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    for record in records:
        assert set(record) <= named
    assert [record["kind"] for record in (records[0], records[-1])] == ["begin", "end"]
    evidence = first["findings"][0]["evidence"]
    assert {*evidence, *evidence["violations"][0]} <= named
