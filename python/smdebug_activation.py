"""Lets scripts be recorded that do not know of it: patches frameworks right after their import.

This runs while an interpreter starts, also in processes that never train anything. So it stands
outside of the package, whose import costs much more, and imports nothing that is not there already.
What is done to a framework stands in `smdebug/zcc/<framework>.py`.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEFAULT_CONFIG = "/opt/ml/input/config/debughookconfig.json"
OFF = ("n", "no", "f", "false", "off", "0")
PATCHES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "smdebug", "zcc")


def is_wanted() -> bool:
    """Whether there is a configuration and nobody has switched recording off."""
    variables = os.environ
    if variables.get("USE_SMDEBUG", "").strip().lower() in OFF:
        return False
    if "SMDEBUG_CONFIG_FILE_PATH" in variables:
        return bool(variables["SMDEBUG_CONFIG_FILE_PATH"])
    return os.path.exists(DEFAULT_CONFIG)


def activate() -> None:
    """Patches frameworks from now on, those that are imported already at once. Never fails."""
    try:
        if is_wanted() and find_finder() is None:
            finder = Finder()
            sys.meta_path.insert(0, finder)
            for name in sorted(finder.names):
                if name in sys.modules:
                    finder.patch(name)
    except Exception as error:
        report(error)


def find_finder() -> "Finder | None":
    """The finder of this process, if activate() was called."""
    for finder in sys.meta_path:
        if type(finder).__name__ == "Finder" and hasattr(finder, "smdebug_patches"):
            return finder  # type: ignore[return-value]
    return None


def report(error: Exception) -> None:
    """One line about a failure, which does not concern the script."""
    if os.environ.get("SMDEBUG_STRICT", "").lower() in ("1", "true", "yes", "y", "t", "on"):
        raise error
    if sys.stderr is not None:
        what = f"{type(error).__name__}: {error}"
        sys.stderr.write(f"smdebug: nothing is recorded, training goes on. {what}\n")


class Finder:
    """Finds frameworks as the other finders do, and has them patched when they are complete."""

    def __init__(self) -> None:
        entries = [entry for entry in os.listdir(PATCHES) if entry.endswith(".py")]
        self.names = frozenset(entry[:-3] for entry in entries) - {"__init__"}
        self.smdebug_patches: dict[str, Any] = {}  # name → an object whose undo() takes them back

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        """A spec for a framework; everything else is left to the other finders."""
        if name not in self.names:
            return None
        for finder in tuple(sys.meta_path):
            find_spec = getattr(finder, "find_spec", None)
            if finder is self or find_spec is None:
                continue
            spec = find_spec(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = PatchingLoader(spec.loader, self)
                return spec
        return None

    def patch(self, name: str) -> None:
        """Patches an imported framework, once. A failure leaves it as it was."""
        if name in self.smdebug_patches:
            return
        try:
            patches = __import__(f"smdebug.zcc.{name}", fromlist=["patch"])
            self.smdebug_patches[name] = patches.patch()
        except Exception as error:
            report(error)


class PatchingLoader:
    """Loads a framework with its own loader, and then has it patched."""

    def __init__(self, loader: "Any", finder: Finder) -> None:
        self._loader = loader
        self._finder = finder

    def __getattr__(self, name: str) -> "Any":
        return getattr(self._loader, name)

    def create_module(self, spec: "Any") -> "Any":
        """As the loader does."""
        return self._loader.create_module(spec)

    def exec_module(self, module: "Any") -> None:
        """The body of the module sees nothing of this loader."""
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        if find_finder() is self._finder:
            self._finder.patch(module.__name__)
