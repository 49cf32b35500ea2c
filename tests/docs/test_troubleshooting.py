"""Every message that the page on troubleshooting quotes is one of the sources."""

import ast
import re
from functools import cache

from markdown_examples import ROOT

PAGE = ROOT / "docs/guide/troubleshooting.md"
LITERALS = re.compile(r'(?:"(?:[^"\\\n]|\\.)*"\s*)+')
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
FEWEST_MESSAGES = 45


def messages() -> list[str]:
    """The first cells of the tables under `message`, where they are code."""
    found: list[str] = []
    for table in re.split(r"^\| message \|", PAGE.read_text(encoding="utf-8"), flags=re.M)[1:]:
        for line in table.splitlines()[2:]:
            cell = re.match(r"\| `([^`]+)` \|", line)
            if cell:
                found.append(cell[1])
            elif not line.startswith("|"):
                break
    return found


@cache
def texts() -> list[str]:
    """The texts of the sources; what is put into them is left out."""
    found: list[str] = []
    for path in [
        *sorted((ROOT / "smd").rglob("*.cpp")),
        *sorted((ROOT / "python/src").glob("*.cpp")),
    ]:
        if not path.name.endswith("_test.cpp"):
            for literals in LITERALS.findall(path.read_text(encoding="utf-8")):
                found.append("".join(LITERAL.findall(literals)))
    for path in sorted((ROOT / "python/smdebug").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (
                    one.value if isinstance(one, ast.Constant) else "{}" for one in node.values
                )
                found.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return found


def is_in_the_sources(message: str) -> bool:
    pattern = re.compile(".*".join(re.escape(part) for part in message.split("…")), re.DOTALL)
    return any(pattern.search(text) for text in texts())


def test_every_message_is_one_of_the_sources():
    quoted = messages()
    assert len(quoted) >= FEWEST_MESSAGES
    assert len(set(quoted)) == len(quoted)
    assert [message for message in quoted if not is_in_the_sources(message)] == []


def test_a_message_of_nobody_is_found_out():
    assert not is_in_the_sources("The disk is … full, and we are sorry.")
