"""Answers questions in JSON, one on each line, until there are no more."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
from typing import Any


def serve(desk: Any) -> None:
    """Each question names a method of the desk as `ask`, and its arguments beside it."""
    logging.disable(logging.WARNING)
    answers = sys.stdout
    for line in sys.stdin:
        question: dict[str, Any] = json.loads(line)
        with contextlib.redirect_stdout(sys.stderr):
            answer = getattr(desk, question.pop("ask"))(**question)
        print(json.dumps(answer), file=answers, flush=True)
