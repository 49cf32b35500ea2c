"""The list of threats names tests that exist, and the sources hold nothing that it excludes."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote, urlsplit

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/dev/threats.md"
PROGRAM = ROOT / "build/dev/smdebug"
NAMED = re.compile(r"`((?:smd|python|tests|fuzz)/[\w./-]+\.(?:py|cpp|mjs))(?:::(\w+))?`")


def named_tests() -> list[tuple[str, str]]:
    return NAMED.findall(PAGE.read_text())


def test_the_page_names_enough_tests() -> None:
    assert len(named_tests()) > 50


@pytest.mark.parametrize(("path", "name"), sorted(set(named_tests())))
def test_every_test_that_is_named_exists(path: str, name: str) -> None:
    file = ROOT / path
    assert file.is_file(), f"There is no {path}."
    if name:
        found = re.search(rf"(def|TEST\w*\(\w+,)\s+{name}\b", file.read_text())
        assert found, f"{path} has no test {name}."


def test_every_row_names_a_test() -> None:
    rows: list[str] = []
    for line in PAGE.read_text().splitlines():
        if line.startswith("| | "):  # more of the row above
            rows[-1] += line
        elif line.startswith("| "):
            rows.append(line)
    attacks = [row for row in rows if not row.startswith("| what comes in")]
    assert len(attacks) > 20
    assert [row for row in attacks if not NAMED.search(row)] == []


# ---- what must not be in the sources

FORBIDDEN = {
    r"\bshell\s*=\s*True": "a shell",
    r"\bos\.(system|popen)\b": "a shell",
    r"\bpickle\.loads?\b|\bcloudpickle\.loads?\b|\bmarshal\.loads?\b": "foreign objects",
    r"allow_pickle\s*=\s*True": "foreign objects",
    r"\byaml\.(unsafe_)?load\b": "foreign objects",
    r"(?<![\w.])(eval|exec)\(": "foreign code",
    r"\btorch\.load\(": "foreign objects",
}
FORBIDDEN_IN_CORE = {
    r"\bstd::system\b|(?<![\w:])system\(": "a shell",
    r"\bpopen\(": "a shell",
    r'"/bin/(ba)?sh"|"sh"': "a shell",
}


def lines_with(pattern: str, files: list[Path]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(pattern, line)
    ]


@pytest.mark.parametrize("pattern", FORBIDDEN)
def test_the_package_has_nothing_that_runs_input(pattern: str) -> None:
    files = sorted((ROOT / "python").glob("smdebug/**/*.py"))
    assert len(files) > 50
    assert lines_with(pattern, files) == []


@pytest.mark.parametrize("pattern", FORBIDDEN_IN_CORE)
def test_the_core_has_nothing_that_runs_input(pattern: str) -> None:
    folders = [ROOT / "smd", ROOT / "python/src", ROOT / "adapters"]
    files = [
        path for folder in folders for path in folder.rglob("*.[ch]*") if path.suffix != ".html"
    ]
    sources = [path for path in files if "_test" not in path.name and path.suffix in (".h", ".cpp")]
    assert len(sources) > 200
    assert lines_with(pattern, sources) == []


# ---- attacks that belong to no module alone

NAMES = [
    "../../outside",
    "/etc/outside",
    "a/../../outside",
    "..",
    "C:\\outside",
    "a\nb\r\nSet-Cookie: x=1",
    '"; rm -rf outside; "',
    "$(touch outside)",
    "`touch outside`",
    "\x1b[31mred",
    "</script><script>alert(1)</script>",
    "größe/π",
    "n" * 300,
]


def record(run: Path, names: list[str], layout: str) -> None:
    import smdebug

    config = smdebug.SaveConfig(save_interval=1)
    with smdebug.Hook(run, save_config=config, save_all=True, layout=layout) as hook, hook.step():
        for number, name in enumerate(names):
            hook.save_tensor(name, np.full(4, number, np.float32))


def files_beside(folder: Path, run: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if run not in path.parents and path != run]


@pytest.mark.parametrize("layout", ["original", "packed"])
def test_names_of_tensors_and_runs_stay_inside(tmp_path: Path, layout: str) -> None:
    import smdebug

    run = tmp_path / "inner" / "run"
    record(run, NAMES, layout)
    trial = smdebug.create_trial(run)
    assert sorted(trial.tensor_names()) == sorted(NAMES)
    assert [trial.tensor(name).value(0)[0] for name in NAMES] == list(range(len(NAMES)))
    assert files_beside(tmp_path, run) == [tmp_path / "inner"]
    report = tmp_path / "report.html"
    for words in (
        ["report", run, "--html", report],
        ["tensorboard", run, "--out", tmp_path / "tb"],
    ):
        subprocess.run([PROGRAM, *words], check=True, cwd=tmp_path, capture_output=True)
    beside = [path.relative_to(tmp_path).parts[0] for path in files_beside(tmp_path, run)]
    assert set(beside) == {"inner", "report.html", "tb"}


WORKER = """
import os, sys
import numpy as np
import smdebug
class Hook(smdebug.Hook):
    def _identify(self):
        return sys.argv[2], sys.argv[2], 1
hook = Hook(sys.argv[1], save_config=smdebug.SaveConfig(save_interval=1), save_all=True)
with hook.step():
    hook.save("w", np.ones(2))
hook.close()
"""


@pytest.mark.parametrize("name", ["../../outside", "/etc/outside", "..", "a/b", "", "a\nb"])
def test_a_worker_cannot_be_named_like_a_path(tmp_path: Path, name: str) -> None:
    run = tmp_path / "inner" / "run"
    done = subprocess.run(
        [sys.executable, "-c", WORKER, str(run), name],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT / "python"), "SMDEBUG_STRICT": "1"},
        check=False,
    )
    assert files_beside(tmp_path, run) in ([], [tmp_path / "inner"]), done.stderr
    # Refused, or written with a name that is one part of a path.
    written = [path for path in run.rglob("*") if path.is_file()]
    assert bool(written) == (done.returncode == 0), done.stderr
    assert [path for path in written if path.relative_to(run).parts[0] in ("etc", "outside")] == []
    depths = {path.relative_to(run).parts[0]: len(path.relative_to(run).parts) for path in written}
    assert set(depths.items()) <= {
        ("collections", 3),
        ("events", 3),
        ("index", 3),
        ("overhead", 2),
    } | {("training_job_end.ts", 1)}


@pytest.mark.parametrize("layout", ["original", "packed"])
def test_a_download_has_a_plain_name(tmp_path: Path, layout: str) -> None:
    run = tmp_path / "run"
    record(run, NAMES, layout)
    server = subprocess.Popen(
        [PROGRAM, "serve", "--json", "--port", "0", str(run)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        port = urlsplit(json.loads(server.stdout.readline())["address"]).port
        for name in NAMES:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", f"/api/runs/run/values.npy?tensor={quote(name, safe='')}")
            answer = connection.getresponse()
            assert answer.status == 200, (name, answer.read())
            assert answer.getheader("Set-Cookie") is None
            disposition = answer.getheader("Content-Disposition") or ""
            [file] = re.findall(r'filename="?([^";]*)', disposition)
            assert re.fullmatch(r"[\w.-]+\.npy", file, re.ASCII), file
            connection.close()
    finally:
        server.terminate()
        server.wait()
