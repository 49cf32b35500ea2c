"""The rules of a hook: the core judges, a thread of its own logs and acts.

Training never waits for any of it. What actions ask of the training itself is left for the hook,
which looks at it when the next step begins.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smdebug import _core
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.logger import core_log, get_logger
from smdebug.run_requests import RunRequests

if TYPE_CHECKING:
    from smdebug.hook import BaseHook
    from smdebug.rules.action.action import Actions

# A name, a configuration, or a class of a built-in rule.
RuleSources = str | Mapping[str, Any] | Iterable[str | Mapping[str, Any]]

# How long closing a hook waits for actions that are still at work.
DRAIN_SECS = 60.0
# How long one wait for an event lasts; the end of the hook ends it, too.
WAIT_SECS = 3600.0
# During this time the actions of a rule run once, unless its configuration says otherwise.
WINDOW_SECS = 60.0


@dataclass
class _Watched:
    """One rule of a hook."""

    name: str
    actions: Actions | None
    parameters: Mapping[str, Any]
    window_secs: float
    has_fired: bool = False
    acted_at: float | None = None


class RuleWatch:
    """The rules of one hook."""

    def __init__(self, sources: Iterable[Any]) -> None:
        self._rules: list[_Watched] = []
        described = [self._describe(source) for source in sources]
        self.core = _core.Watch.create(described)
        self._requests: RunRequests | None = None
        self._out_dir = ""
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    def _describe(self, source: Any) -> tuple[str, dict[str, Any], int | None]:
        from smdebug.rules.action.action import Actions
        from smdebug.rules.action.stop_stalled import stop_on_fire
        from smdebug.rules.builtin import builtin_class, rule_of

        outer = dict(source) if isinstance(source, Mapping) else source
        actions = outer.pop("actions", None) if isinstance(outer, dict) else None
        interval = outer.pop("save_interval", None) if isinstance(outer, dict) else None
        window = outer.pop("window_s", WINDOW_SECS) if isinstance(outer, dict) else WINDOW_SECS
        name, parameters = rule_of(outer)
        rule = builtin_class(name).rule
        if interval is None and isinstance(outer, dict):
            interval = _interval_of_collections(outer, rule)
        # Says what is wrong as the rule's class does.
        used: Any = _core.RuleEvaluator(rule, parameters).parameters
        if isinstance(actions, list | Mapping) and not _are_objects(actions):
            actions = json.dumps(actions)
        made = Actions(actions, rule) if actions else None
        if stop_on_fire(rule, used, "") is not None:
            made = made or Actions("", rule)
        self._rules.append(_Watched(rule, made, used, _seconds(window)))
        return rule, parameters, _interval(interval, rule)

    # ---- the training's side

    def start(self, hook: BaseHook) -> None:
        """The hook is there: others may find it, and what rules say is listened to."""
        self._out_dir = hook.out_dir
        if "://" not in self._out_dir:
            self._out_dir = os.path.abspath(self._out_dir)  # the training may go elsewhere
        if "://" not in self._out_dir and not hook.dry_run and self._has_actions():
            try:
                self._requests = RunRequests(hook, self._out_dir)
            except (OSError, SMDebugValueError) as error:
                get_logger().warning(f"The run cannot be announced to its watchers. {error}")
        self._add_stops()
        self._thread = threading.Thread(target=self._run, name="smdebug-rules", daemon=True)
        self._thread.start()

    @property
    def requests(self) -> Collection[Mapping[str, Any]]:
        """What actions, or others, ask of the training."""
        return () if self._requests is None else self._requests.pending

    def answer(self, hook: BaseHook) -> None:
        """Does what was asked for. Raises TrainingStopRequested if that was it."""
        if self._requests is not None:
            self._requests.answer(hook)

    def close(self, timeout_secs: float = DRAIN_SECS) -> None:
        """Waits until everything was dealt with; the hook is closed. Not in forked children."""
        if os.getpid() != self._pid:
            return
        self.core.end()
        if self._requests is not None:
            self._requests.close()
        if self._thread is None or self._thread is threading.current_thread():
            return
        self._thread.join(timeout_secs)
        if self._thread.is_alive():
            get_logger().warning(
                "The actions of rules did not end within %g s; the rest is left out.", timeout_secs
            )

    def _add_stops(self) -> None:
        """The switch `stop_training_on_fire` of a rule comes after its other actions."""
        from smdebug.rules.action.stop_stalled import stop_on_fire

        for rule in self._rules:
            try:
                stop = stop_on_fire(rule.name, rule.parameters, self._out_dir)
            except SMDebugValueError as error:
                get_logger().error(f"The training will not be stopped by rule {rule.name}. {error}")
                continue
            if stop is not None and rule.actions is not None:
                rule.actions.add(stop)

    def _has_actions(self) -> bool:
        return any(rule.actions is not None for rule in self._rules)

    # ---- the thread's side

    def _run(self) -> None:
        while not self.core.ended:
            event: Any = self.core.take(WAIT_SECS)
            try:
                if event is not None:
                    number, what = event
                    if isinstance(what, str):
                        core_log(number, what)
                    else:
                        self._tell(self._rules[number], what)
            except Exception as error:  # nothing of this may end the thread
                get_logger().error(f"Acting for a rule failed. {type(error).__name__}: {error}")

    def _tell(self, rule: _Watched, record: Mapping[str, Any]) -> None:
        if not rule.has_fired:
            rule.has_fired = True
            get_logger().warning(
                f"Rule {rule.name} fired at step {record['step']}: {record['message']} "
                f"Further hits are in {self._out_dir}/findings."
            )
        now = time.monotonic()
        if rule.actions is None:
            return
        if rule.acted_at is not None and now - rule.acted_at < rule.window_secs:
            return
        rule.acted_at = now
        hit = self._hit(record)
        rule.actions.invoke(hit.message, hit)

    def _hit(self, record: Mapping[str, Any]) -> Any:
        from smdebug.rules.hit import Hit

        fields = ("rule", "step", "message", "mode", "mode_step", "severity", "parameters")
        return Hit(
            **{name: record[name] for name in fields},
            time=record["time"] or time.time(),
            violations=record["violations"],
            run=os.path.basename(self._out_dir.rstrip("/")),
            path=self._out_dir,
        )


def watch_for(rules: RuleSources) -> RuleWatch | None:
    """The watch of a hook with these rules; None without any."""
    if isinstance(rules, str | Mapping | type):
        return RuleWatch([rules])
    if not isinstance(rules, Iterable):
        raise SMDebugTypeError(f"rules must be names or configurations, not {rules!r}.")
    listed = list(rules)
    return RuleWatch(listed) if listed else None


def rules_in(json_file_path: str) -> list[Any]:
    """The list `rules` of a hook's configuration file; the hook says what is wrong with the file."""
    rules: Any = _core.rules_of_config(json_file_path)
    if rules is None:
        return []
    if not isinstance(rules, list):
        raise SMDebugValueError(f"rules must be a list, not {rules!r}: {json_file_path}")
    return rules


def _are_objects(actions: Any) -> bool:
    return isinstance(actions, list) and not any(isinstance(one, Mapping | str) for one in actions)


def _interval_of_collections(config: Mapping[str, Any], rule: str) -> int | None:
    """The shortest interval that a configuration asks for and the rule's table does not."""
    from smdebug.rules.builtin import rule_table

    usual = {row["name"]: row["parameters"] for row in rule_table()[rule]["collections"]}
    asked: list[int] = []
    for part in config.get("CollectionConfigurations") or ():
        own = dict(part.get("CollectionParameters") or {})
        interval = own.get("save_interval")
        by_table = usual.get(part.get("CollectionName"), {}).get("save_interval")
        if str(interval) == by_table:
            continue
        found = _interval(interval, rule)
        if found is not None:
            asked.append(found)
    return min(asked, default=None)


def _interval(interval: Any, rule: str) -> int | None:
    if interval is None:
        return None
    text = str(interval).strip()
    if isinstance(interval, bool) or not text.isdecimal() or int(text) < 1:
        raise SMDebugValueError(
            f"save_interval of {rule} must be a whole number of at least 1, not {interval!r}."
        )
    return int(text)


def _seconds(window: Any) -> float:
    from smdebug.rules.action.base import number

    return number(window, "window_s")
