"""The page of `smdebug diagnose --html` stands alone, and a browser shows it."""

import os
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("smdebug._core")

import smdebug

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("SMDEBUG_PROGRAM", ROOT / "build/dev/smdebug"))
EVIL = "</style><script>document.title='taken'</script>"


@pytest.fixture
def report(tmp_path):
    """The page about a run with hostile names, and the JUnit report."""
    with smdebug.Hook(
        out_dir=tmp_path / "run", include_regex=".*", save_config={"save_interval": 1}
    ) as hook:
        for number in range(30):
            hook.step()
            hook.save_tensor(f"x{EVIL}", np.array([1.0, np.nan if number > 20 else number]))
            hook.save_tensor("loss", np.float64(1 / (number + 1)), "losses")
    done = subprocess.run(
        [
            *(PROGRAM, "diagnose", tmp_path / "run", "--rules", "ExplodingTensor"),
            *("--html", tmp_path / "report.html", "--junit", tmp_path / "report.xml"),
        ],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    return tmp_path / "report.html", tmp_path / "report.xml"


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))


def test_it_needs_no_script_and_no_other_files(report):
    tags = Tags()
    tags.feed(report[0].read_text(encoding="utf-8"))
    names = [tag for tag, _ in tags.seen]
    assert names.count("svg") == 2
    assert names.count("article") == 1
    assert not {"script", "link", "img", "iframe", "object", "image", "use"} & set(names)
    attributes = {name for _, found in tags.seen for name in found}
    assert not {"src", "onload", "xlink:href"} & attributes
    assert all((found["href"] or "").startswith("#") for _, found in tags.seen if "href" in found)
    assert "url(" not in report[0].read_text(encoding="utf-8")


def test_both_files_are_well_formed(report):
    page = ElementTree.fromstring(report[0].read_text(encoding="utf-8"))
    titles = [node.text for node in page.findall(".//{*}title")]
    assert f"x{EVIL} (abs_max)" in titles
    suites = ElementTree.fromstring(report[1].read_text(encoding="utf-8"))
    assert suites.get("failures") == "1"
    assert EVIL in suites.find(".//failure").get("message")


def test_a_browser_shows_it(report, tmp_path):
    browser = shutil.which("chromium")
    if browser is None:
        # What a browser would show is checked as far as a parser can.
        test_it_needs_no_script_and_no_other_files(report)
        return
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/browser"]
    done = subprocess.run(
        [browser, *flags, "--dump-dom", report[0].as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "<title>Diagnosis of " in done.stdout
    assert done.stdout.count("<svg") == 2
    assert "<script" not in done.stdout
    assert "taken" not in done.stdout.split("</title>")[0]
    picture = tmp_path / "page.png"
    subprocess.run(
        [browser, *flags, f"--screenshot={picture}", report[0].as_uri()],
        capture_output=True,
        timeout=120,
        check=True,
    )
    assert picture.read_bytes().startswith(b"\x89PNG")
