"""The page of the original's names is what both packages say of themselves."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import dropped_names  # noqa: E402
import original_names  # noqa: E402

pytestmark = pytest.mark.skipif(
    not original_names.is_available(), reason="Run tools/venv.sh for original, torch, … first."
)


def rows() -> dict[str, original_names.Row]:
    return {f"{row.module}:{row.name}": row for row in original_names.rows()}


def test_the_page_is_fresh():
    page = original_names.PAGE.read_text(encoding="utf-8")
    assert page == original_names.page(), "run: tools/original_names.py"


def test_every_module_of_the_original_was_seen():
    names, theirs, _ = original_names.inventories()
    assert len(names) > 100
    # The notebooks of the profiler need a package that is not installed.
    unseen = {module for module, told in theirs.items() if told is None}
    assert all(module.startswith("smdebug.profiler.analysis.notebook") for module in unseen)


def test_what_scripts_import_is_there():
    found = rows()
    for module in ("pytorch", "mxnet", "xgboost", "tensorflow"):
        for name in ("SaveConfig", "CollectionKeys", "modes", "create_trial", "get_hook"):
            assert found[f"smdebug.{module}:{name}"].state in ("same", "extended")
    for path in ("trials.utils:create_trial", "rules.rule:Rule", "exceptions:NoMoreData"):
        assert found[f"smdebug.{path}"].state in ("same", "extended")
    for path in ("tensorflow.keras:KerasHook", "pytorch.hook:Hook", "mxnet.hook:Hook"):
        assert found[f"smdebug.{path}"].state != "dropped"


def test_no_reason_is_left_over():
    """A pattern that no name needs any more hides what is there now."""
    found = rows()
    for table, state in ((dropped_names.DROPPED, "dropped"), (dropped_names.CHANGED, "changed")):
        used = set()
        for row in found.values():
            if row.state == state:
                key = f"{row.module}:{row.name}"
                fits = (p for p in table if original_names.fnmatchcase(key, p))
                used.add(next(fits, ""))
        assert set(table) - used == set()


@pytest.mark.parametrize(
    ("original", "here", "lost"),
    [
        ("a b", "a b", []),
        ("a b", "a b c=", []),
        ("a b", "a", ["b"]),
        ("a b", "b a", ["a", "b"]),
        ("a", "a b", ["b"]),
        ("a=", "a", ["a"]),
        ("a b", "*args **kwargs", []),
    ],
)
def test_arguments_that_do_not_fit_are_found(original, here, lost):
    def signature(text):
        kinds = {"*args": "VAR_POSITIONAL", "**kwargs": "VAR_KEYWORD"}
        return [
            (one.strip("*="), kinds.get(one, "POSITIONAL_OR_KEYWORD"), one.endswith("="))
            for one in text.split()
        ]

    assert original_names.lost_arguments(signature(original), signature(here)) == lost
