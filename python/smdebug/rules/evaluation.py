"""Judges many runs by many rules at once, on any executor, with the same result on each."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from smdebug.exceptions import (
    NoMoreData,
    RuleEvaluationConditionMet,
    SMDebugTypeError,
    SMDebugValueError,
)
from smdebug.open_trial import create_trial
from smdebug.rules.builtin import builtin_class, create_rule, rule_of
from smdebug.rules.rule import Rule
from smdebug.rules.rule_invoker import invoke_rule
from smdebug.trial import Trial

# A class or function that is called with a trial, one of them with further arguments, the name of a
# built-in rule or a configuration of `rule_configs`.
RuleSource = (
    Callable[..., Rule] | tuple[Callable[..., Rule], Mapping[str, Any]] | str | Mapping[str, Any]
)
_ON_FIRE = ("continue", "stop")


@dataclass(frozen=True)
class Outcome:
    """What a rule found in a run."""

    run: str  # where the run is
    rule: str
    status: str  # NoIssuesFound, IssuesFound or Error
    steps: tuple[int, ...] = ()  # global steps at which the condition was met
    hits: tuple[Mapping[str, Any], ...] = ()  # what actions were told, without the time
    error: str = ""
    report: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Place:
    """A run in a form that travels to other processes."""

    path: str
    name: str | None
    options: Mapping[str, Any]


@dataclass(frozen=True)
class _Span:
    start: int
    end: int | None
    follow: bool
    on_fire: str


def run_rules(
    runs: str | os.PathLike[str] | Trial | Iterable[str | os.PathLike[str] | Trial],
    rules: RuleSource | Iterable[RuleSource],
    executor: concurrent.futures.Executor | None = None,
    *,
    start_step: int = 0,
    end_step: int | None = None,
    follow: bool = False,
    on_fire: str = "continue",
) -> list[Outcome]:
    """Judges each run by each rule; the outcomes are sorted by run, then as the rules are listed.

    A rule is a class or function that is called with the trial, a pair of one and its keyword
    arguments, the name of a built-in rule, or a configuration of `rule_configs`. Runs are paths or trials; a trial stands for its
    place, and each task opens its own.

    The steps that are there when a run is opened are judged; with `follow` each run is followed to
    its end. After a hit a rule goes on, or with `on_fire="stop"` ends. Without an executor the tasks
    run in new processes, as many as there are processors; then rules must be importable.
    """
    asked = [_place(run) for run in _several(runs, (str, os.PathLike, Trial))]
    places = [place for _, place in sorted({_key(place): place for place in asked}.items())]
    sources = list(_several(rules, (str, Mapping, tuple)))
    for source in sources:
        _name_of(source)
    if on_fire not in _ON_FIRE:
        raise SMDebugValueError(f"on_fire must be continue or stop, not {on_fire!r}.")
    span = _Span(start_step, end_step, follow, on_fire)
    # A run is opened once for all rules, unless there is only one to share among the processors.
    groups = [sources] if len(places) > 1 else [[source] for source in sources]
    tasks = [(place, group) for place in places for group in groups]
    if not tasks:
        return []
    if executor is not None:
        return _gathered(executor, tasks, span)
    context = multiprocessing.get_context("spawn")  # forked processes would inherit our threads
    workers = min(len(tasks), len(os.sched_getaffinity(0)))
    with concurrent.futures.ProcessPoolExecutor(workers, mp_context=context) as pool:
        return _gathered(pool, tasks, span)


def _gathered(
    executor: concurrent.futures.Executor,
    tasks: Sequence[tuple[_Place, list[RuleSource]]],
    span: _Span,
) -> list[Outcome]:
    futures = [executor.submit(_judge, place, group, span) for place, group in tasks]
    try:
        return [outcome for future in futures for outcome in future.result()]
    finally:
        for future in futures:
            future.cancel()


def _judge(place: _Place, sources: Sequence[RuleSource], span: _Span) -> list[Outcome]:
    """The outcomes of some rules for one run; a failure is an outcome, too."""
    try:
        trial = create_trial(place.path, place.name, **place.options)
    except Exception as error:
        return [
            Outcome(place.path, _name_of(source), "Error", error=_words(error))
            for source in sources
        ]
    return [_outcome(trial, source, span) for source in sources]


def _outcome(trial: Trial, source: RuleSource, span: _Span) -> Outcome:
    hits: list[dict[str, Any]] = []
    name, error, report = _name_of(source), "", {}
    try:
        rule = _make(source, trial)
        name = rule.rule_name
        _record_hits(rule, hits)
        _invoke(rule, span)
    except Exception as failure:
        error = _words(failure)
    else:
        report = rule.report
    status = "Error" if error else "IssuesFound" if hits else "NoIssuesFound"
    steps = tuple(hit["step"] for hit in hits)
    return Outcome(trial.path, name, status, steps, tuple(hits), error, report)


def _record_hits(rule: Rule, hits: list[dict[str, Any]]) -> None:
    told = rule.hit

    def hit(step: int) -> Any:
        found = told(step)
        record = found.record()
        del record["time"]  # differs from one evaluation to the next
        hits.append(record)
        return found

    rule.hit = hit  # type: ignore[method-assign]


def _invoke(rule: Rule, span: _Span) -> None:
    end = span.end
    if not span.follow:
        there = rule.base_trial.steps()
        last = there[-1] + 1 if there else 0
        end = last if end is None else min(end, last)
    try:
        invoke_rule(rule, span.start, end, raise_eval_cond=span.on_fire == "stop")
        if span.end is None:
            rule.judge_end()
    except (NoMoreData, RuleEvaluationConditionMet):
        return


def _make(source: RuleSource, trial: Trial) -> Rule:
    if isinstance(source, str | Mapping):
        return create_rule(source, trial)
    make, arguments = source if isinstance(source, tuple) else (source, {})
    rule = make(trial, **arguments)
    if not isinstance(rule, Rule):
        raise SMDebugTypeError(f"{_name_of(source)} made {rule!r}, which is no rule.")
    return rule


def _name_of(source: Any) -> str:
    if isinstance(source, str | Mapping):
        return builtin_class(rule_of(source)[0]).rule
    make = source
    if isinstance(source, tuple):
        make = source[0] if len(source) == 2 and isinstance(source[1], Mapping) else None
    if not callable(make):
        raise SMDebugTypeError(
            "A rule to run is a class or function that takes a trial, a pair of one and its "
            f"arguments, or a configuration of rule_configs, not {source!r}."
        )
    return str(getattr(make, "__name__", type(make).__name__))


def _place(run: Any) -> _Place:
    if isinstance(run, Trial):
        options = {"range_steps": run.range_steps, "check": run.check, "cache": run.cache}
        return _Place(run.path, run.name, options)
    if not isinstance(run, str | os.PathLike):
        raise SMDebugTypeError(f"A run is a path or a trial, not {run!r}.")
    return _Place(os.fspath(run), None, {})


def _key(place: _Place) -> tuple[str, str, str]:
    return place.path, place.name or "", str(sorted(place.options.items()))


def _several(things: Any, single: tuple[type, ...]) -> list[Any]:
    if isinstance(things, single) or callable(things):
        return [things]
    return list(things)


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
