"""Tells somebody by SMS, through a web service or a mail gateway of yours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.rules.action.base import Action, ActionFailed, text
from smdebug.rules.action.email import Email
from smdebug.rules.action.webhook import Webhook
from smdebug.rules.hit import Hit


class SMS(Action):
    """Has no transport of its own: give the settings of a `webhook`, or of a mail `gateway`.

    A webhook gets `{"to": number, "text": message}`, unless it has a template of its own; a text for
    `webhook` is its URL. A gateway has the settings of `Email`.
    """

    def __init__(
        self,
        phone_number: str,
        webhook: str | Mapping[str, Any] | None = None,
        gateway: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.phone_number = text(phone_number, "phone_number")
        if not re.fullmatch(r"\+\d{1,15}", self.phone_number):
            raise SMDebugValueError(
                f"phone_number must be + and 1 to 15 digits, not {phone_number!r}."
            )
        if webhook is not None and gateway is not None:
            raise SMDebugValueError("Give webhook or gateway, not both.")
        self.transport: Action | None = None
        if webhook is not None:
            settings = {"url": webhook} if isinstance(webhook, str) else _settings(webhook)
            told = {"to": self.phone_number, "text": "SMDebugRule:$rule fired. $message"}
            self.transport = Webhook(**{"template": told, **settings})
        elif gateway is not None:
            self.transport = Email(**_settings(gateway))

    def intent(self, hit: Hit) -> str:
        how = "nothing, since it has no webhook and no gateway"
        return how if self.transport is None else f"{self.transport.intent(hit)}, for an SMS"

    def perform(self, hit: Hit) -> str:
        if self.transport is None:
            raise ActionFailed(
                f"An SMS to {self.phone_number} needs a webhook or a gateway, and none is configured."
            )
        self.transport.perform(hit)
        return f"A message to {self.phone_number} was handed over."


def _settings(given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise SMDebugTypeError(f"Settings by name were expected, not {given!r}.")
    return {str(name): value for name, value in given.items()}
