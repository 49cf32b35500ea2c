"""Modes, for tools written for the original."""

from smdebug._core import ModeKeys

ALLOWED_MODES = list(ModeKeys)
ALLOWED_MODE_NAMES = [mode.name for mode in ModeKeys]
MODE_STEP_PLUGIN_NAME = "mode_step"
MODE_PLUGIN_NAME = "mode"


def str_to_mode_keys(mode_str: str) -> ModeKeys:
    """The mode of a lower-case name."""
    return ModeKeys[mode_str.upper()]


__all__ = [
    "ALLOWED_MODES",
    "ALLOWED_MODE_NAMES",
    "MODE_PLUGIN_NAME",
    "MODE_STEP_PLUGIN_NAME",
    "ModeKeys",
    "str_to_mode_keys",
]
