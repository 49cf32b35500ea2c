"""The examples for PyTorch run and show what they promise."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import smdebug.pytorch
from markdown_examples import check_examples
from smdebug import shards
from smdebug.hook import BaseHook

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "SMDEBUG_LOG_LEVEL": "off"}
    done = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_sick_layer_is_found(tmp_path: Path) -> None:
    script = str(ROOT / "examples/pytorch/train.py")
    printed = run(script, "--out", str(tmp_path / "run"))
    norms = dict(re.findall(r"gradient/Classifier_(\S+)\.weight\s+(\S+)", printed))
    assert set(norms) == {"layers.0", "layers.1", "layers.2", "layers.3", "head"}
    below = [float(norms[f"layers.{i}"]) for i in (0, 1, 2)]
    above = [float(norms[name]) for name in ("layers.3", "head")]
    assert max(below) < 0.01 * min(above)


def test_parts_of_a_sharded_model_are_put_together(tmp_path: Path) -> None:
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    script = str(ROOT / "examples/pytorch/sharded.py")
    printed = run(*launcher, script, "--out", str(tmp_path / "run"))
    assert printed.splitlines()[-3:] == [
        "worker_0 holds (5, 6) from (0, 0)",
        "worker_1 holds (4, 6) from (5, 0)",
        "together (9, 6)",
    ]


@pytest.mark.parametrize("page", ["pytorch", "run"])
def test_the_examples_of_the_guide_print_what_is_shown(tmp_path: Path, page: str) -> None:
    check_examples(ROOT / f"docs/guide/{page}.md", tmp_path)


def test_the_quick_start_prints_what_is_shown(tmp_path: Path) -> None:
    check_examples(ROOT / "docs/guide/quick-start.md", tmp_path, "PyTorch")


def test_the_reference_names_every_argument_and_member() -> None:
    page = (ROOT / "docs/reference/pytorch.md").read_text(encoding="utf-8")
    code = " ".join(re.findall(r"`[^`]+`", page))
    hook = smdebug.pytorch.Hook
    names = set(inspect.signature(hook.__init__).parameters)
    names -= set(inspect.signature(BaseHook.__init__).parameters) | {"options"}
    names |= {name for name in set(dir(hook)) - set(dir(BaseHook)) if not name.startswith("_")}
    names |= set(smdebug.pytorch.__all__) | {"add_module_tensors", "parts", "value"}
    names |= {"reduction_values", *shards.Part.__dataclass_fields__}
    missing = {name for name in names if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", code)}
    assert missing == set()
    for name, patterns, _ in hook.builtin_collections:
        assert all(f"| `{name}` | `{pattern}` |" in page for pattern in patterns)
