"""The page of cases names tests that exist, for every case."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/dev/framework-cases.md").read_text(encoding="utf-8")
FOLDERS = ("python/tests", "tests/gpu")
CASES = {
    *(f"PT-{number}" for number in range(1, 28)),
    *(f"X-{number}" for number in range(1, 16)),
    *(f"M-{number}" for number in range(1, 13)),
    *(f"K-{number}" for number in range(1, 27)),
    *(f"S-{number}" for number in range(1, 5)),
    "E-1",
    *(f"Z-{number}" for number in range(1, 5)),
}


def functions_of(file: str) -> set[str]:
    (path,) = (path for folder in FOLDERS if (path := ROOT / folder / file).exists())
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_case_is_there_once():
    listed = re.findall(r"^\| ([A-Z]+-\d+) \|", PAGE, re.MULTILINE)
    assert sorted(listed) == sorted(CASES)


def test_every_case_names_tests_that_exist():
    rows = re.findall(
        r"^\| ([A-Z]+-\d+)? ?\|.*?\| `(test_\w+\.py)` \| `(test_\w+)` \|$", PAGE, re.MULTILINE
    )
    assert {case for case, _, _ in rows} - {""} == CASES
    assert [name for _, file, name in rows if name not in functions_of(file)] == []
