"""The documentation is true: its examples run, its links lead somewhere, its rules are kept."""

import importlib.util
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!`)!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
SKIPPED = {"build", ".venvs", "node_modules", ".git", "dist"}
LONGEST_LINE = 200
LONGEST_README = 150
BOUNDARY = "\x1e"


def markdown_files() -> list[Path]:
    return [
        path
        for path in sorted(ROOT.rglob("*.md"))
        if not SKIPPED & set(path.relative_to(ROOT).parts) and ".egg-info" not in str(path)
    ]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@dataclass
class Example:
    line: int
    code: str
    output: str | None  # None: whatever it prints is fine


def examples_of(path: Path) -> list[Example]:
    """The python blocks of a file; a text block right after one is its output."""
    text = path.read_text(encoding="utf-8")
    examples: list[Example] = []
    previous_end = -1
    for match in FENCE.finditer(text):
        language, content = match[1], match[2]
        follows = previous_end >= 0 and not text[previous_end : match.start()].strip()
        previous_end = -1
        if language == "python":
            examples.append(Example(text.count("\n", 0, match.start(2)), content, None))
            previous_end = match.end()
        elif language == "text" and follows:
            examples[-1].output = content
    return examples


def run_examples(examples: list[Example], folder: Path, name: str) -> list[str]:
    """Runs the blocks one after the other in one namespace; what each of them printed."""
    script = folder / "run_examples.py"
    blocks = [("\n" * example.line + example.code) for example in examples]
    script.write_text(
        f"import sys\nnamespace = {{'__name__': '__main__'}}\nfor block in {blocks!r}:\n"
        f"    exec(compile(block, {name!r}, 'exec'), namespace)\n"
        f"    sys.stdout.write({BOUNDARY!r})\n",
        encoding="utf-8",
    )
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("SMDEBUG_", "RANK", "WORLD_SIZE"))
    }
    package = [str(ROOT / "python")] if any((ROOT / "python/smdebug").glob("_core*.so")) else []
    environment["PYTHONPATH"] = os.pathsep.join([*package, environment.get("PYTHONPATH", "")])
    environment["SMDEBUG_LOG_LEVEL"] = "off"
    done = subprocess.run(
        [sys.executable, script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"an example of {name} fails:\n{done.stderr}"
    return done.stdout.split(BOUNDARY)[:-1]


# Their examples run in the suite of the framework, which has an environment of its own.
NEEDS = {"pytorch.md": "torch"}


def can_run(path: Path) -> bool:
    return path.name not in NEEDS or importlib.util.find_spec(NEEDS[path.name]) is not None


DOCUMENTS_WITH_EXAMPLES = [
    path
    for path in [ROOT / "README.md", *sorted((ROOT / "docs/guide").glob("*.md"))]
    if path.exists() and can_run(path) and examples_of(path)
]


@pytest.mark.parametrize("path", DOCUMENTS_WITH_EXAMPLES, ids=name_of)
def test_examples_run_and_print_what_is_shown(path, tmp_path):
    pytest.importorskip("smdebug._core")
    examples = examples_of(path)
    printed = run_examples(examples, tmp_path, name_of(path))
    for example, output in zip(examples, printed, strict=True):
        if example.output is not None:
            assert output == example.output, f"{name_of(path)}:{example.line}"


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
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [n for n, line in enumerate(lines, start=1) if len(line) > LONGEST_LINE] == []


@pytest.mark.parametrize("path", markdown_files(), ids=name_of)
def test_no_path_of_a_private_machine_is_shown(path):
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"(?<![\w.])/(?:work|tmp|root|home)/\S*", text) == []


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= LONGEST_README
