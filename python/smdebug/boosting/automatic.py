"""The hook of scripts that do not know of it, as the job's JSON file describes it."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from typing import Any, TypeVar

from smdebug import _core, run_config
from smdebug.automatic import close_with_process, log_to_stderr
from smdebug.boosting.hook import BoostingHook

# Collections of networks, which `smdebug run` asks for before it knows the framework.
OF_NETWORKS = ("weights", "biases", "gradients", "inputs", "outputs", "optimizer_variables")
REDUCING = ("reductions", "save_raw_tensor", "save_shape")


def document_for_boosting(document: dict[str, Any]) -> dict[str, Any]:
    """A configuration without what boosted trees do not have.

    Where parts of a network were asked for, the importance of features is saved instead; metrics
    are saved as often as losses.
    """
    given = document.get("CollectionConfigurations") or []
    kept = [c for c in given if c.get("CollectionName") not in OF_NETWORKS]
    names = [c.get("CollectionName") for c in kept]
    if len(kept) < len(given) and "feature_importance" not in names:
        kept.append({"CollectionName": "feature_importance"})
    for collection in kept[:]:
        if collection.get("CollectionName") == "losses" and "metrics" not in names:
            kept.append({**collection, "CollectionName": "metrics"})
    parameters = {
        name: value
        for name, value in (document.get("HookParameters") or {}).items()
        if name not in REDUCING
    }
    return {**document, "HookParameters": parameters, "CollectionConfigurations": kept}


H = TypeVar("H", bound=BoostingHook)


def make_hook(kind: type[H]) -> H:
    """The hook that the job's JSON file describes; its messages keep off the script's output."""
    log_to_stderr()
    path = _core.config_file_path()
    with open(path, encoding="utf-8") as file:
        document: Any = _core.parse_json(file.read(), path)
    if not isinstance(document, dict):
        return kind.create_from_json_file(path)  # says what is wrong
    folder = tempfile.mkdtemp(prefix="smdebug-")
    atexit.register(shutil.rmtree, folder, True)
    hook = kind.create_from_json_file(run_config.write(document_for_boosting(document), folder))
    close_with_process(hook)
    return hook
