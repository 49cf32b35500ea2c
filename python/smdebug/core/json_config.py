"""The JSON of a training job, for tools written for the original.

The core parses it; these functions show the result in the original's shape.
"""

from __future__ import annotations

import os
from typing import Any

from smdebug import _core
from smdebug.collection import CollectionManager
from smdebug.core.config_constants import (
    CONFIG_FILE_PATH_ENV_STR,
    DEFAULT_CONFIG_FILE_PATH,
    DEFAULT_RESOURCE_CONFIG_FILE,
    DEFAULT_SAGEMAKER_OUTDIR,
    DEFAULT_SAGEMAKER_TENSORBOARD_PATH,
    DEFAULT_WORKER_NAME,
    TENSORBOARD_CONFIG_FILE_PATH_ENV_STR,
)
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import SMDebugValueError


def get_json_config_as_dict(json_config_path: str | None) -> dict[str, Any]:
    """The document in the file: the given one, or the one that the environment names."""
    path = json_config_path or _core.config_file_path()
    with open(os.path.expanduser(path), encoding="utf-8") as file:
        document = _core.parse_json(file.read(), path)
    if not isinstance(document, dict):
        raise SMDebugValueError(f"The configuration must be a JSON object: {path}")
    return document


def collect_hook_config_params(params_dict: dict[str, Any]) -> dict[str, Any]:
    """What the document says about the hook itself, with all defaults filled in."""
    parsed = _core.parse_hook_config(params_dict)
    save_config = parsed["save_config"] or _core.SaveConfig()
    return {
        "out_dir": parsed["out_dir"] or DEFAULT_SAGEMAKER_OUTDIR,
        "save_all": parsed["save_all"],
        "include_regex": parsed["include_regex"] or None,
        "exclude_regex": parsed["exclude_regex"] or None,
        "include_workers": parsed["include_workers"],
        "save_config": parsed["save_config"],
        "save_config_modes": {
            mode: save_config.get_save_config(mode).to_json_dict() for mode in ModeKeys
        },
        "reduction_config": parsed["reduction_config"],
        "save_configs": {c["name"]: c["save_config"] for c in parsed["collections"]},
        "reduction_configs": {c["name"]: c["reduction_config"] for c in parsed["collections"]},
        "export_tensorboard": parsed["export_tensorboard"],
        "tensorboard_dir": parsed["tensorboard_dir"],
    }


def get_include_collections(params_dict: dict[str, Any]) -> list[str] | None:
    """The names of the listed collections; None if there is no list."""
    listed = [c["name"] for c in _core.parse_hook_config(params_dict)["collections"]]
    return listed or None


def add_collections_to_manager(
    collection_manager: CollectionManager, params_dict: dict[str, Any], hook_params: Any = None
) -> None:
    """Puts the listed collections into the manager."""
    for listed in _core.parse_hook_config(params_dict)["collections"]:
        collection = collection_manager.get(listed["name"])
        collection.include(listed["include_regex"])
        collection.exclude(listed["exclude_regex"])
        collection.save_config = listed["save_config"]
        if listed["reduction_config"] is not None:
            collection.reduction_config = listed["reduction_config"]
        if listed["save_histogram"] is not None:
            collection.save_histogram = listed["save_histogram"]


def create_hook_from_json_config(
    hook_cls: Any, json_config_path: str | None, default_values: Any = None
) -> Any:
    """A hook of this class; the class itself knows its framework's default values."""
    return hook_cls.create_from_json_file(json_config_path)


def get_tensorboard_dir_from_json_config() -> str | None:
    """The folder named by the TensorBoard configuration; None if there is none."""
    path = os.getenv(TENSORBOARD_CONFIG_FILE_PATH_ENV_STR) or DEFAULT_SAGEMAKER_TENSORBOARD_PATH
    return get_json_config_as_dict(path).get("LocalPath") if os.path.isfile(path) else None


def get_node_id_from_resource_config() -> str | None:
    """The name of this host among those of a managed job; None outside of one."""
    path = DEFAULT_RESOURCE_CONFIG_FILE
    return get_json_config_as_dict(path).get("current_host") if os.path.isfile(path) else None


__all__ = [
    "CONFIG_FILE_PATH_ENV_STR",
    "DEFAULT_CONFIG_FILE_PATH",
    "DEFAULT_RESOURCE_CONFIG_FILE",
    "DEFAULT_SAGEMAKER_OUTDIR",
    "DEFAULT_SAGEMAKER_TENSORBOARD_PATH",
    "DEFAULT_WORKER_NAME",
    "TENSORBOARD_CONFIG_FILE_PATH_ENV_STR",
    "add_collections_to_manager",
    "collect_hook_config_params",
    "create_hook_from_json_config",
    "get_include_collections",
    "get_json_config_as_dict",
    "get_node_id_from_resource_config",
    "get_tensorboard_dir_from_json_config",
]
