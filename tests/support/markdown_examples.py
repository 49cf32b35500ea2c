"""The Python blocks of a Markdown file run, and print what the file shows."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BOUNDARY = "\x1e"


@dataclass
class Example:
    line: int
    code: str
    output: str | None  # None: whatever it prints is fine


def section_of(text: str, heading: str) -> tuple[int, int]:
    """Where the section of a heading of the second level begins and ends."""
    start = re.search(rf"^## {re.escape(heading)}$", text, re.MULTILINE)
    assert start is not None, f"there is no section '{heading}'"
    end = re.compile(r"^## ", re.MULTILINE).search(text, start.end())
    return start.start(), end.start() if end else len(text)


def examples_of(path: Path, section: str | None = None) -> list[Example]:
    """The python blocks of a file or of a section; a text block right after one is its output."""
    text = path.read_text(encoding="utf-8")
    start, end = section_of(text, section) if section else (0, len(text))
    examples: list[Example] = []
    previous_end = -1
    for match in FENCE.finditer(text):
        if not start <= match.start() < end:
            continue
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
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"an example of {name} fails:\n{done.stderr}"
    return done.stdout.split(BOUNDARY)[:-1]


def check_examples(path: Path, folder: Path, section: str | None = None) -> None:
    """Runs the examples of a file, or of one of its sections, in a folder."""
    name = path.relative_to(ROOT).as_posix()
    examples = examples_of(path, section)
    assert examples, f"{name} has no examples {section or ''}"
    printed = run_examples(examples, folder, name)
    for example, output in zip(examples, printed, strict=True):
        if example.output is not None:
            assert output == example.output, f"{name}:{example.line}"
