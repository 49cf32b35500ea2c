"""Tells somebody by e-mail, through a mail server of yours."""

from __future__ import annotations

import re
from email.message import EmailMessage
from email.utils import parseaddr
from typing import Any

from smdebug.exceptions import SMDebugValueError
from smdebug.rules.action.base import Action, flag, number, secret, text
from smdebug.rules.hit import Hit

TLS_MODES = ("none", "starttls", "tls")
_PORTS = {"none": 25, "starttls": 587, "tls": 465}
# What the SageMaker SDK accepts; kept for `compat`.
_AWS_PATTERN = re.compile(r"[a-z0-9]+@\w+\.\w{2,3}")
_ADDRESS = re.compile(r"[^@\s<>,;]+@[^@\s<>,;]+")


class Email(Action):
    """Sends one mail per hit over SMTP.

    `tls` is "none", "starttls" or "tls". With `user`, the password is what the environment variable
    named by `secret_env` holds. `compat` accepts only the addresses that the SageMaker SDK accepts.
    """

    def __init__(
        self,
        email_address: str,
        host: str = "localhost",
        port: int | str | None = None,
        tls: str = "starttls",
        sender: str | None = None,
        user: str | None = None,
        secret_env: str = "SMDEBUG_SMTP_SECRET",
        timeout_s: float | str = 10,
        compat: bool | str = False,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        pattern = _AWS_PATTERN if flag(compat, "compat") else _ADDRESS
        self.email_address = _address(email_address, "email_address", pattern)
        if tls not in TLS_MODES:
            raise SMDebugValueError(f"tls must be one of {', '.join(TLS_MODES)}, not {tls!r}.")
        self.host = text(host, "host")
        self.port = _PORTS[tls] if port is None else int(number(port, "port"))
        self.tls = tls
        self.sender = _address(sender or self.email_address, "sender", _ADDRESS)
        self.user = user
        self.secret_env = text(secret_env, "secret_env")
        self.timeout_s = number(timeout_s, "timeout_s")

    def intent(self, hit: Hit) -> str:
        return f"send a mail to {self.email_address} through {self.host}:{self.port}"

    def perform(self, hit: Hit) -> str:
        import smtplib
        import ssl

        mail = EmailMessage()
        mail["From"], mail["To"] = self.sender, self.email_address
        mail["Subject"] = f"SMDebugRule:{hit.rule} fired"
        mail.set_content(f"SMDebugRule:{hit.rule} fired. {hit.message}\n\n{hit.to_json()}\n")
        context = None if self.tls == "none" else ssl.create_default_context()
        if self.tls == "tls":
            server: smtplib.SMTP = smtplib.SMTP_SSL(
                self.host, self.port, timeout=self.timeout_s, context=context
            )
        else:
            server = smtplib.SMTP(self.host, self.port, timeout=self.timeout_s)
        with server:
            if self.tls == "starttls":
                server.starttls(context=context)
            if self.user is not None:
                server.login(self.user, secret(self.secret_env))
            server.send_message(mail)
        return f"A mail was sent to {self.email_address}."


def _address(value: Any, name: str, pattern: re.Pattern[str]) -> str:
    given = text(value, name)
    if not pattern.fullmatch(given) or parseaddr(given)[1] != given:
        raise SMDebugValueError(f"{name} must be the address of a mailbox, not {given!r}.")
    return given
