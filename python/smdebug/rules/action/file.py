"""Appends hits to a file."""

from __future__ import annotations

import os
from typing import Any

from smdebug.rules.action.base import Action, text
from smdebug.rules.hit import Hit


class File(Action):
    """Appends the record of the hit as one line of JSON; several processes may share a file."""

    def __init__(self, path: str | os.PathLike[str], **options: Any) -> None:
        super().__init__(**options)
        self.path = os.path.expanduser(text(os.fspath(path), "path"))

    def intent(self, hit: Hit) -> str:
        return f"append the hit to {self.path}"

    def perform(self, hit: Hit) -> str:
        os.makedirs(os.path.dirname(self.path) or ".", exist_ok=True)
        line = (hit.to_json() + "\n").encode()
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            written = os.write(handle, line)  # one call, so that lines of others do not mix in
            if written != len(line):
                raise OSError(f"only {written} of {len(line)} bytes could be written")
        finally:
            os.close(handle)
        return f"The hit was appended to {self.path}"
