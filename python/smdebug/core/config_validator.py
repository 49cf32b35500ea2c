"""Whether get_hook() may give a hook, for tools written for the original."""

from __future__ import annotations

from smdebug import singleton
from smdebug.core.utils import FRAMEWORK, is_framework_version_supported


class ConfigValidator:
    """Looks at USE_SMDEBUG and at the version of the framework."""

    def __init__(self, framework_type: FRAMEWORK) -> None:
        self._framework_type = framework_type

    def validate_training_job(self) -> bool:
        return singleton.is_enabled() and is_framework_version_supported(self._framework_type)


_config_validator: ConfigValidator | None = None


def get_config_validator(framework: FRAMEWORK) -> ConfigValidator:
    """The validator of this process; the first framework that asks decides."""
    global _config_validator
    if _config_validator is None:
        _config_validator = ConfigValidator(framework)
    return _config_validator


def reset_config_validator() -> None:
    """Forgets the validator and what USE_SMDEBUG said."""
    global _config_validator
    _config_validator = None
    singleton.reset_enabled()


__all__ = [
    "ConfigValidator",
    "get_config_validator",
    "is_framework_version_supported",
    "reset_config_validator",
]
