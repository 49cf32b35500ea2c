"""The documentation is true: its examples run, its links lead somewhere, its rules are kept."""

import re
from pathlib import Path

import pytest
from markdown_examples import FENCE, check_examples, examples_of

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<!`)!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
SKIPPED = {"build", ".venvs", "node_modules", ".git", "dist"}
LONGEST_LINE = 200
LONGEST_README = 150


def markdown_files() -> list[Path]:
    return [
        path
        for path in sorted(ROOT.rglob("*.md"))
        if not SKIPPED & set(path.relative_to(ROOT).parts) and ".egg-info" not in str(path)
    ]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# Their tools are in other environments, whose suites run the examples.
ELSEWHERE = {
    ROOT / f"docs/guide/{name}.md"
    for name in (
        "exporters",
        "keras",
        "mxnet",
        "object-storage",
        "pytorch",
        "quick-start",
        "run",
        "tensorflow-sessions",
        "xgboost",
    )
}
DOCUMENTS_WITH_EXAMPLES = [
    path
    for path in [ROOT / "README.md", *sorted((ROOT / "docs/guide").glob("*.md"))]
    if path.exists() and path not in ELSEWHERE and examples_of(path)
]


@pytest.mark.parametrize("path", DOCUMENTS_WITH_EXAMPLES, ids=name_of)
def test_examples_run_and_print_what_is_shown(path, tmp_path):
    pytest.importorskip("smdebug._core")
    check_examples(path, tmp_path)


def anchors_of(path: Path) -> set[str]:
    """The anchors that headings of a file get, as the usual viewers make them."""
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    anchors = set()
    for heading in HEADING.findall(text):
        kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
        anchors.add(kept.replace(" ", "-"))
    return anchors


@pytest.mark.parametrize("path", markdown_files(), ids=name_of)
def test_relative_links_lead_somewhere(path):
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    broken = []
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        is_page = there.suffix == ".md" and there.is_file()
        if not there.exists() or (anchor and is_page and anchor not in anchors_of(there)):
            broken.append(target)
    assert broken == []


def documents() -> list[Path]:
    """What users and newcomers read; notes beside test data may run longer."""
    notes = {"docs/dev/original.md"}
    return [
        path
        for path in markdown_files()
        if not name_of(path).startswith("tests/") and name_of(path) not in notes
    ]


@pytest.mark.parametrize("path", documents(), ids=name_of)
def test_lines_are_short_enough_to_review(path):
    made = re.compile("<!-- make bench -->.*<!-- end of make bench -->", re.DOTALL)
    text = made.sub(lambda m: "\n" * m.group().count("\n"), path.read_text(encoding="utf-8"))
    lines = text.splitlines()
    assert [n for n, line in enumerate(lines, start=1) if len(line) > LONGEST_LINE] == []


@pytest.mark.parametrize("path", markdown_files(), ids=name_of)
def test_no_path_of_a_private_machine_is_shown(path):
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"(?<![\w.])/(?:work|tmp|root|home)/\S*", text) == []


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= LONGEST_README


def test_every_guide_with_examples_is_run_somewhere():
    """Those that need more than this environment are named by a test of another suite."""
    tests = [*(ROOT / "python/tests").glob("test_*.py"), *(ROOT / "tests").rglob("test_*.py")]
    others = " ".join(
        path.read_text(encoding="utf-8") for path in tests if path != Path(__file__).resolve()
    )
    # One test runs two guides by a parameter.
    named = {path for path in ELSEWHERE if f"guide/{path.name}" in others}
    named |= {
        ROOT / f"docs/guide/{name}.md" for name in ("pytorch", "run") if f'"{name}"' in others
    }
    assert ELSEWHERE - named == set()
    assert [path for path in ELSEWHERE if not examples_of(path)] == []


def test_every_guide_is_listed():
    page = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    pages = [*(ROOT / "docs/guide").glob("*.md"), *(ROOT / "docs/reference").glob("*.md")]
    pages += [ROOT / "docs/dev/tour.md"]
    assert [
        name_of(path) for path in pages if f"({path.relative_to(ROOT / 'docs')})" not in page
    ] == []
