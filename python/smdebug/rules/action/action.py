"""The actions of a rule, from JSON text or as objects."""

from __future__ import annotations

import inspect
import json
from typing import Any

from smdebug import _core
from smdebug.exceptions import SMDebugError, SMDebugTypeError
from smdebug.logger import get_logger
from smdebug.rules.action.base import Action, flag
from smdebug.rules.action.checkpoint import Checkpoint
from smdebug.rules.action.command import Command
from smdebug.rules.action.email import Email
from smdebug.rules.action.file import File
from smdebug.rules.action.log import Log
from smdebug.rules.action.message_action import MessageAction
from smdebug.rules.action.save_now import SaveNow
from smdebug.rules.action.sms import SMS
from smdebug.rules.action.stop_training import StopTraining
from smdebug.rules.action.stop_training_action import StopTrainingAction
from smdebug.rules.action.webhook import Webhook
from smdebug.rules.hit import Hit

# In the cloud, unless `"local": true` is among the keys.
ALLOWED_ACTIONS = ["stoptraining", "sms", "email"]
_LOCAL: dict[str, type[Action]] = {
    "stoptraining": StopTraining,
    "sms": SMS,
    "email": Email,
    "webhook": Webhook,
    "command": Command,
    "log": Log,
    "file": File,
    "savenow": SaveNow,
    "checkpoint": Checkpoint,
}
_OPTIONS = [name for name in inspect.signature(Action.__init__).parameters if name != "self"]
# What `endpoint` means to the local actions.
_ENDPOINTS = {"sms": "phone_number", "email": "email_address"}

ActionArgument = str | Action | list[Action] | tuple[Action, ...] | None


class _Malformed(Exception):
    """An action cannot be made from its description."""


class Actions:
    """What happens, in this order, when the condition of a rule is met."""

    def __init__(self, actions_str: ActionArgument = "", rule_name: str = "") -> None:
        self._rule_name = rule_name
        self._logger = get_logger()
        self._actions: list[Action] = []
        if isinstance(actions_str, Action):
            self._actions = [actions_str]
        elif isinstance(actions_str, str) or hasattr(actions_str, "serialize"):
            self._register(_text_of(actions_str))
        elif isinstance(actions_str, list | tuple):
            self._actions = list(actions_str)
        elif actions_str is not None:
            raise SMDebugTypeError(f"Actions are JSON text or objects, not {actions_str!r}.")
        for action in self._actions:
            if not isinstance(action, Action):
                raise SMDebugTypeError(f"An action was expected, not {action!r}.")
            action.rule_name = action.rule_name or rule_name

    def add(self, action: Action) -> None:
        """One more, after the others."""
        action.rule_name = action.rule_name or self._rule_name
        self._actions.append(action)

    def _register(self, text: str) -> None:
        if not text.strip():
            return
        described = _parse(text)
        for fields in described if isinstance(described, list) else [described]:
            try:
                self._actions.append(self._make(fields))
            except _Malformed as error:
                self._logger.error(f"An action of rule {self._rule_name} is skipped. {error}")

    def _make(self, fields: Any) -> Action:
        if not isinstance(fields, dict):
            raise _Malformed(f"An object with a name was expected, not {fields!r}.")
        given = {str(key).lower(): value for key, value in fields.items()}
        name = str(given.pop("name", "")).strip().lower()
        if name not in _LOCAL:
            hint = _core.did_you_mean(name, list(_LOCAL))
            raise _Malformed(f"There is no action {name!r}; there are {', '.join(_LOCAL)}.{hint}")
        try:
            is_local = flag(given.pop("local", name not in ALLOWED_ACTIONS), "local")
            return self._local(name, given) if is_local else self._in_cloud(name, given)
        except (SMDebugError, TypeError) as error:
            raise _Malformed(f"The action {name!r} is not valid: {error}") from error

    def _in_cloud(self, name: str, given: dict[str, Any]) -> Action:
        options = {key: value for key, value in given.items() if key in _OPTIONS}
        needed = "training_job_prefix" if name == "stoptraining" else "endpoint"
        value = given.get(needed)
        if not isinstance(value, str) or not value.strip():
            raise _Malformed(f"The action {name!r} needs the key {needed!r} with a text.")
        if name == "stoptraining":
            return StopTrainingAction(self._rule_name, value.strip(), **options)
        return MessageAction(self._rule_name, name, value.strip(), **options)

    @staticmethod
    def _local(name: str, given: dict[str, Any]) -> Action:
        made = _LOCAL[name]
        if name in _ENDPOINTS and "endpoint" in given:
            given.setdefault(_ENDPOINTS[name], given.pop("endpoint"))
        own = [key for key in inspect.signature(made.__init__).parameters if key != "self"]
        known = [key for key in own if key != "options"]
        known += [option for option in _OPTIONS if option not in known]
        for key in given:
            if key not in known:
                raise _Malformed(
                    f"The action {name!r} has no key {key!r}; there are {', '.join(known)}."
                    f"{_core.did_you_mean(key, known)}"
                )
        return made(**given)

    def invoke(self, message: str = "", hit: Hit | None = None) -> None:
        """Runs all actions. Raises nothing: what fails is logged."""
        for action in self._actions:
            action.invoke(message, hit)


def _text_of(actions: Any) -> str:
    return actions if isinstance(actions, str) else str(actions.serialize())


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        # The SDK escapes the quotes for a shell that may not be there.
        if '\\"' not in text:
            raise
        return json.loads(text.replace('\\"', '"'))


__all__ = ["ALLOWED_ACTIONS", "ActionArgument", "Actions", "MessageAction", "StopTrainingAction"]
