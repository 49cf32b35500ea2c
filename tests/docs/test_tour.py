"""The tour names files that exist, and goes through every module of a gradient's way."""

import re

from markdown_examples import ROOT

PAGE = ROOT / "docs/dev/tour.md"
PATHS = re.compile(r"`((?:smd|python|viewer|tests|tools)/[\w./-]+\.\w+)`")
STATIONS = ("hook", "reduce", "writer", "format", "storage", "trial", "server", "rules", "watch")


def named() -> list[str]:
    return PATHS.findall(PAGE.read_text(encoding="utf-8"))


def test_every_file_exists():
    assert len(named()) > 50
    assert [path for path in named() if not (ROOT / path).is_file()] == []


def test_the_way_leads_through_every_module():
    modules = {path.split("/")[1] for path in named() if path.startswith("smd/")}
    assert set(STATIONS) <= modules
    assert any(path.startswith("viewer/") for path in named())
