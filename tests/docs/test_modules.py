"""Every public module has a page in the reference, and every public name of it stands there."""

import ast
import importlib
import re
from pathlib import Path

import pytest
from markdown_examples import ROOT

PACKAGE = ROOT / "python/smdebug"
REFERENCE = ROOT / "docs/reference"
ROW = re.compile(r"^\| `(smdebug[\w.]*)` \|.*?((?:\[[^\]]+\]\([\w.-]+\.md[^)]*\)[, ]*)+)\|$", re.M)
PAGES_OF = {
    module: re.findall(r"\(([\w.-]+\.md)", links)
    for module, links in ROW.findall((REFERENCE / "modules.md").read_text(encoding="utf-8"))
}


def path_of(module: str) -> Path:
    path = PACKAGE.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def listed_names(path: Path) -> list[str] | None:
    """What stands in `__all__`; None: there is none. Frameworks need not be there."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            if isinstance(node.value, ast.List):
                return list(ast.literal_eval(node.value))
            return list(importlib.import_module(module_of(path)).__all__)
    return None


def public_names(path: Path) -> set[str]:
    """`__all__`, or what the module itself defines."""
    listed = listed_names(path)
    if listed is not None:
        return set(listed)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    defined = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef))
    return {node.name for node in defined if not node.name.startswith("_")}


def test_every_module_with_a_list_of_names_has_a_page():
    with_list = {
        module_of(path) for path in PACKAGE.rglob("*.py") if listed_names(path) is not None
    }
    assert len(with_list) > 40
    assert with_list - set(PAGES_OF) == set()


def test_every_import_path_of_the_original_has_a_page():
    old = {module_of(path) for path in (PACKAGE / "core").rglob("*.py")}
    assert old - set(PAGES_OF) == {"smdebug.core"}


@pytest.mark.parametrize("module", PAGES_OF)
def test_every_public_name_stands_on_the_page_of_its_module(module):
    names = public_names(path_of(module))
    assert names
    texts = [(REFERENCE / page).read_text(encoding="utf-8") for page in PAGES_OF[module]]
    code = " ".join(" ".join(re.findall(r"```.*?```|`[^`]+`", text, re.DOTALL)) for text in texts)
    missing = {name for name in names if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", code)}
    assert missing == set()
