"""When to save, for tools written for the original."""

from smdebug._core import SaveConfig, SaveConfigMode

DEFAULT_SAVE_CONFIG_INTERVAL = SaveConfigMode().save_interval
DEFAULT_SAVE_CONFIG_START_STEP = 0
DEFAULT_SAVE_CONFIG_END_STEP: int | None = None
DEFAULT_SAVE_CONFIG_SAVE_STEPS: list[int] = []

__all__ = [
    "DEFAULT_SAVE_CONFIG_END_STEP",
    "DEFAULT_SAVE_CONFIG_INTERVAL",
    "DEFAULT_SAVE_CONFIG_SAVE_STEPS",
    "DEFAULT_SAVE_CONFIG_START_STEP",
    "SaveConfig",
    "SaveConfigMode",
]
