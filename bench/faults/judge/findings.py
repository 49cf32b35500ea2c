"""Findings of the rule engine as alarms. Everything that is assumed about its output stands here.

`smdebug diagnose RUN… --json` prints one document per run:

    {"run": "…", "findings": [
        {"rule": "DeadRelu", "severity": "warning",
         "first": {"step": 70, "mode": "TRAIN", "mode_step": 60},
         "tensors": [{"tensor": "layers.1.relu_output_0", "first_step": 70, "hits": 4}, …],
         "workers": ["worker_0"], …}, …],
     "no_issues_found": ["Overfit", …],
     "not_evaluated": [{"rule": "TreeDepth", "message": "…"}, …], "failed": [… alike]}

Findings are ranked, the root cause first; tensors of a finding too. `first.step` is a global step.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from faults.judge.alarm import Alarm

# Names of detectors as the engine has them, where they differ from those in the table of faults by
# more than case and underscores.
ALIASES: dict[str, str] = {}


def plain(rule: str) -> str:
    """A rule's name for comparing: case and underscores do not matter."""
    name = rule.replace("_", "").lower()
    return ALIASES.get(name, name)


def documents(text: str) -> Iterator[dict[str, Any]]:
    """The JSON documents of an output, which stand one after the other."""
    decoder = json.JSONDecoder()
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        document, at = decoder.raw_decode(text, at)
        yield document


def alarms(document: dict[str, Any]) -> list[Alarm]:
    """The alarms of one document, in their order."""
    return [
        Alarm(
            rule=finding["rule"],
            severity=finding["severity"],
            first_step=int(finding["first"]["step"]),
            tensors=tuple(one["tensor"] for one in finding["tensors"]),
            workers=tuple(finding["workers"]),
        )
        for finding in document["findings"]
    ]


def known_rules(document: dict[str, Any]) -> set[str]:
    """The rules that the engine knows, from what it says about any run."""
    noted = [*document["not_evaluated"], *document["failed"]]
    return {
        *(finding["rule"] for finding in document["findings"]),
        *document["no_issues_found"],
        *(note["rule"] for note in noted),
    }


def failures(document: dict[str, Any]) -> list[str]:
    """Rules that failed instead of judging."""
    return [note["rule"] for note in document["failed"]]
