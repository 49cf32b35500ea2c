"""The include table is kept, and a violation of each of its rules is found."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import check_layers  # noqa: E402


def plant(root: Path, path: str, text: str) -> list[str]:
    """What the check says about a tree that holds one file."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return check_layers.check(root)


def test_this_repository_keeps_the_table():
    assert check_layers.check(ROOT) == []


def test_what_the_table_allows_is_no_problem(tmp_path):
    text = '#include "smd/hook/hook.h"\n\n#include <vector>\n\n#include "smd/base/error.h"\n'
    assert plant(tmp_path, "smd/hook/hook.cpp", text) == []
    assert plant(tmp_path, "smd/smd.h", '#include "smd/hook/hook.h"\n') == []
    assert plant(tmp_path, "smd/reduce/x.cpp", '#include "smd/reduce/internal/pass.h"\n') == []
    assert plant(tmp_path, "smd/base/y.h", "// TensorBoard, a torchlight and a flaxen sky\n") == []


@pytest.mark.parametrize(
    ("path", "line", "message"),
    [
        ("smd/base/x.h", '#include "smd/hook/hook.h"', "base must not include hook"),
        ("smd/reduce/x.h", '#include "smd/types/step.h"', "reduce must not include types"),
        ("smd/hook/x.cpp", '#include "smd/smd.h"', "hook must not include native"),
        ("smd/hook/x.cpp", '#include "smd/reduce/internal/pass.h"', "is private to reduce"),
        ("smd/hook/x.cpp", '#  include "python/src/errors.h"', "must not include the Python"),
        ("smd/hook/x.cpp", '#include "smd/utils/x.h"', "belongs to no module"),
        ("smd/utils/x.h", "int x;", "utils is no module"),
        ("smd/hook/x.cpp", "// as PyTorch does it", "names PyTorch"),
        ("smd/hook/x.cpp", "int torch_rank = 0;", "names torch"),
    ],
)
def test_a_planted_violation_is_found(tmp_path, path, line, message):
    first_line = 1 if "utils is no" in message else 2
    problems = plant(tmp_path, path, f"#pragma once\n{line}\n")
    assert len(problems) == 1
    assert problems[0].startswith(f"{path}:{first_line}: ")
    assert message in problems[0]


def test_public_names_of_rules_may_name_a_framework(tmp_path):
    assert not plant(tmp_path, "smd/rules/x.cpp", "extern const RuleKind create_xgboost_report;\n")
    assert plant(tmp_path, "smd/rules/x.cpp", "// xgboost_report is of XGBoost\n")


def test_the_build_must_use_what_the_table_says(tmp_path):
    (tmp_path / "smd").mkdir()
    (tmp_path / "CMakeLists.txt").write_text(
        "smd_module(base LINK fmt::fmt)\nsmd_module(reduce USES tensor types CATALOG kinds)\n"
    )
    assert check_layers.check(tmp_path) == [
        "CMakeLists.txt:2: reduce must use tensor, not tensor, types"
    ]


def test_an_old_table_in_the_documentation_is_found_and_rewritten(tmp_path):
    (tmp_path / "smd").mkdir()
    document = tmp_path / check_layers.DOCS
    document.write_text(f"# A\n\n{check_layers.BEGIN}\nold\n{check_layers.END}\n\nrest\n")
    assert "the module table is old" in check_layers.check(tmp_path)[0]
    assert check_layers.check(tmp_path, write_docs=True) == []
    assert check_layers.check(tmp_path) == []
    assert "| `hook` | collection, writer, packed, summary |" in document.read_text()
    assert document.read_text().endswith("\n\nrest\n")


def test_the_command_prints_problems_and_exits_with_1(tmp_path):
    plant(tmp_path, "smd/base/x.h", '#include "smd/hook/hook.h"\n')
    script = ROOT / "tools" / "check_layers.py"
    done = subprocess.run(
        [sys.executable, script, "--root", tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout.startswith("smd/base/x.h:1: base must not include hook")
    wrong = subprocess.run(
        [sys.executable, script, "--root", tmp_path / "no"], capture_output=True, check=False
    )
    assert wrong.returncode == 2
