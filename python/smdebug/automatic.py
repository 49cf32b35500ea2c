"""Hooks of scripts that do not know of them: made from the job's JSON file, silent on its output."""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, TypeVar

from smdebug import _core, run_config
from smdebug.exceptions import SMDebugValueError
from smdebug.hook import BaseHook
from smdebug.logger import get_logger

AnyHook = TypeVar("AnyHook", bound=Any)  # has set_option(name, value)


class GivingWay(BaseHook):
    """Stands before the hook of an adapter: one that the script makes itself takes over."""

    on_replaced: Callable[[], None] | None = None

    def _replaced(self) -> None:
        if self.on_replaced is not None:
            self.on_replaced()
        self.close()


def make_hook(
    kind: type[AnyHook],
    options: dict[str, type],
    place_of: Callable[[str], str] = lambda place: place,
) -> AnyHook:
    """A hook of the class `kind` that the job's JSON file describes.

    `options` are the FrameworkParameters of the adapter, with their types. `place_of` may choose
    another directory than the file's.
    """
    log_to_stderr()
    path = _core.config_file_path()
    with open(path, encoding="utf-8") as file:
        document: Any = _core.parse_json(file.read(), path)
    place = document.get("LocalPath") if isinstance(document, dict) else None
    chosen = place_of(place) if isinstance(place, str) and place else place
    if chosen == place:
        hook = kind.create_from_json_file(path)
    else:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as changed:
            json.dump({**document, "LocalPath": chosen}, changed)
            changed.flush()
            hook = kind.create_from_json_file(changed.name)
    _apply(hook, options, document.get("FrameworkParameters") or {})
    close_with_process(hook)
    return hook


def rename_patterns(hook: Any, patterns: dict[str, list[str]]) -> None:
    """Puts others in place of the patterns of `smdebug run`, which are for names of modules.

    The command writes them before it knows the framework. Collections that are not named get none:
    their tensors are known by what they are.
    """
    for name, general in run_config.PATTERNS.items():
        collection = hook.get_collection(name)
        if collection.include_regex == general:
            collection.include_regex = patterns.get(name, [])


def _apply(hook: Any, options: dict[str, Any], parameters: Any) -> None:
    """The options of the adapter's hook, which the core does not know of."""
    if not isinstance(parameters, dict):
        raise SMDebugValueError(f"FrameworkParameters must be an object, not {parameters!r}.")
    for name, value in ({"auto_mode": True} | parameters).items():
        if name not in options:
            near = get_close_matches(name, options, 1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            get_logger().warning(f"Ignoring the unknown key '{name}' in FrameworkParameters.{hint}")
            continue
        if type(value) is not options[name]:
            raise SMDebugValueError(
                f"FrameworkParameters.{name} must be of type {options[name].__name__}, not {value!r}."
            )
        hook.set_option(name, value)


def log_to_stderr() -> None:
    """Messages keep off what the script prints."""
    if "SMDEBUG_LOG_ALL_TO_STDOUT" in os.environ:
        return
    for handler in get_logger().handlers:
        if isinstance(handler, logging.StreamHandler) and handler.stream is sys.stdout:
            handler.setStream(sys.stderr)


def close_with_process(hook: Any) -> None:
    """Children of multiprocessing end without what is registered with atexit."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.Finalize(None, hook._close, args=(True,), exitpriority=10)
