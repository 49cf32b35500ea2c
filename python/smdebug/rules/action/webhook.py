"""Tells a web service: an HTTP POST of the hit."""

from __future__ import annotations

import hashlib
import hmac
import json
import string
import threading
from collections.abc import Mapping
from typing import Any

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.rules.action.base import Action, ActionFailed, number, secret, text
from smdebug.rules.hit import Hit

SIGNATURE_HEADER = "X-SMDebug-Signature"
_SCHEMES = ("http://", "https://")


class Webhook(Action):
    """Posts the record of the hit as JSON, at most `attempts` times.

    `template` posts something else: a text, or a structure for JSON, in whose texts `$rule`, `$step`
    and the other fields of the record are filled in. With `secret_env`, the header
    X-SMDebug-Signature is `sha256=` and the HMAC of the body under the secret of that environment
    variable.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str] | None = None,
        template: Any = None,
        secret_env: str | None = None,
        timeout_s: float | str = 5,
        attempts: int | str = 3,
        backoff_s: float | str = 0.5,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.url = text(url, "url")
        if not self.url.lower().startswith(_SCHEMES):
            raise SMDebugValueError(f"url must begin with http:// or https://, not {url!r}.")
        if headers is not None and not isinstance(headers, Mapping):
            raise SMDebugTypeError(f"headers must be names and values, not {headers!r}.")
        self.headers = {str(name): str(value) for name, value in (headers or {}).items()}
        self.template = template
        self.secret_env = secret_env
        self.timeout_s = number(timeout_s, "timeout_s")
        self.attempts = int(number(attempts, "attempts"))
        if self.attempts < 1:
            raise SMDebugValueError(f"attempts must be at least 1, not {attempts!r}.")
        self.backoff_s = number(backoff_s, "backoff_s")
        self._pause = threading.Event()  # never set: waiting for it is waiting

    def intent(self, hit: Hit) -> str:
        return f"post the hit to {self.url}"

    def perform(self, hit: Hit) -> str:
        kind, body = self._body(hit)
        headers = {"Content-Type": kind, **self.headers}
        if self.secret_env:
            digest = hmac.new(secret(self.secret_env).encode(), body, hashlib.sha256).hexdigest()
            headers[SIGNATURE_HEADER] = f"sha256={digest}"
        for attempt in range(1, self.attempts + 1):
            problem, is_final = self._post(body, headers)
            if not problem:
                return f"The hit was posted to {self.url}"
            if is_final or attempt == self.attempts:
                break
            self._pause.wait(self.backoff_s * 2 ** (attempt - 1))
        raise ActionFailed(f"{problem}, after {attempt} attempts: {self.url}")

    def _body(self, hit: Hit) -> tuple[str, bytes]:
        record = hit.record()
        if isinstance(self.template, str):
            return "text/plain; charset=utf-8", _filled(self.template, record).encode()
        content = record if self.template is None else _filled(self.template, record)
        return "application/json", json.dumps(content, allow_nan=False).encode()

    def _post(self, body: bytes, headers: dict[str, str]) -> tuple[str, bool]:
        """What went wrong, if anything, and whether a second attempt is pointless."""
        import urllib.error
        import urllib.request

        class NoRedirect(urllib.request.HTTPRedirectHandler):
            def redirect_request(self, *_: Any) -> None:
                return None  # elsewhere a POST would arrive as a GET without its body

        request = urllib.request.Request(self.url, data=body, headers=headers, method="POST")
        try:
            opener = urllib.request.build_opener(NoRedirect)
            opener.open(request, timeout=self.timeout_s).close()
            return "", True
        except urllib.error.HTTPError as error:
            error.close()
            may_pass = error.code >= 500 or error.code in (408, 429)
            return f"The service answered {error.code} {error.reason}", not may_pass
        except OSError as error:
            return f"The service could not be reached ({error})", False


def _filled(template: Any, record: dict[str, Any]) -> Any:
    """The template with fields of the record in its texts; unknown `$names` stay."""
    if isinstance(template, str):
        texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in record.items()}
        return string.Template(template).safe_substitute(texts)
    if isinstance(template, Mapping):
        return {str(key): _filled(value, record) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [_filled(value, record) for value in template]
    return template
