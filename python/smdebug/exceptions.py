"""Every exception that smdebug raises on purpose. All of them pickle."""

from __future__ import annotations

from typing import Any

from smdebug._core import ModeKeys


class SMDebugError(Exception):
    """The root of all exceptions of smdebug."""


class SMDebugCustomerError(SMDebugError):
    """Reserved for errors in the user's own code."""


class SMDebugTypeError(SMDebugError, TypeError):
    """An argument has the wrong type."""


class SMDebugRuntimeError(SMDebugError, RuntimeError):
    """Something cannot be done in the present state."""


class SMDebugNotImplementedError(SMDebugError, NotImplementedError):
    """Valid, but this version or format cannot do it."""


class SMDebugValueError(SMDebugError, ValueError):
    """An argument has a value that makes no sense."""


class SMDebugFileNotFoundError(SMDebugError, FileNotFoundError):
    """A file that should be there is not."""


class _Described(SMDebugError):
    """Keeps the constructor's arguments, so that the exception survives pickling."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)

    def describe(self) -> str:
        raise NotImplementedError

    def __str__(self) -> str:
        return self.describe()


class InvalidCollectionConfiguration(_Described):
    """A collection is to be saved but holds neither names nor patterns."""

    def __init__(self, c_name: str) -> None:
        super().__init__(c_name)
        self.c_name = c_name

    def describe(self) -> str:
        return (
            f"The collection '{self.c_name}' has neither patterns nor tensor names, so nothing can be "
            "saved for it; add some with include() or add_tensor_name()."
        )


class StepNotYetAvailable(_Described):
    """The step may come later."""

    def __init__(self, step: int, mode: ModeKeys) -> None:
        super().__init__(step, mode)
        self.step = step
        self.mode = mode

    def describe(self) -> str:
        return f"Step {self.step} of mode {self.mode.name} is not available yet."


class StepUnavailable(_Described):
    """The step was not saved and will not be."""

    def __init__(self, step: int, mode: ModeKeys) -> None:
        super().__init__(step, mode)
        self.step = step
        self.mode = mode

    def describe(self) -> str:
        return f"Step {self.step} of mode {self.mode.name} was not saved."


class TensorUnavailableForStep(_Described):
    """The tensor's value was not saved at this step, or is gone: then `reason` says why."""

    def __init__(
        self,
        tname: str,
        step: int,
        mode: ModeKeys = ModeKeys.GLOBAL,
        has_reductions: bool = False,
        reason: str = "",
    ) -> None:
        super().__init__(tname, step, mode, has_reductions, reason)
        self.tname = tname
        self.step = step
        self.mode = mode
        self.has_reductions = has_reductions
        self.reason = reason

    def describe(self) -> str:
        if self.reason:
            return (
                f"The value of tensor '{self.tname}' at step {self.step} of mode {self.mode.name} "
                f"is gone. {self.reason}"
            )
        text = f"Tensor '{self.tname}' was not saved at step {self.step} of mode {self.mode.name}."
        if self.has_reductions:
            text += " Reductions of it were: see reduction_value() and reduction_values()."
        return text


class ShapeUnavailableForStep(TensorUnavailableForStep):
    """Neither the tensor's shape nor its value was saved at this step."""

    def __init__(self, tname: str, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> None:
        super().__init__(tname, step, mode)
        self.args = (tname, step, mode)

    def describe(self) -> str:
        return (
            f"The shape of tensor '{self.tname}' was not saved at step {self.step} of mode "
            f"{self.mode.name}."
        )


class TensorUnavailable(_Described):
    """No tensor of this name was saved so far."""

    def __init__(self, tname: str, hint: str = "") -> None:
        super().__init__(tname, hint)
        self.tname = tname
        self.hint = hint

    def describe(self) -> str:
        return f"Tensor '{self.tname}' was not saved.{self.hint}"


class InvalidWorker(_Described):
    """No worker of this name saved the tensor."""

    def __init__(self, worker: str) -> None:
        super().__init__(worker)
        self.worker = worker

    def describe(self) -> str:
        return f"There is no data of a worker '{self.worker}'."


class MissingCollectionFiles(_Described):
    """The job ended before all of its workers had written their collections."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)

    def describe(self) -> str:
        return " ".join(str(arg) for arg in self.args) or (
            "The training job ended without the collections files of all its workers."
        )


class IndexReaderException(_Described):
    """An index file is malformed."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def describe(self) -> str:
        return self.message


class NoMoreData(_Described):
    """The job has ended; its last step is before the one asked for."""

    def __init__(self, step: int, mode: ModeKeys, last_step: int) -> None:
        super().__init__(step, mode, last_step)
        self.step = step
        self.mode = mode
        self.last_step = last_step

    def describe(self) -> str:
        return (
            f"The training job has ended: its last step is {self.last_step}, so step {self.step} of mode "
            f"{self.mode.name} will not come."
        )


class NoMoreProfilerData(_Described):
    """The profiler wrote nothing after this time."""

    def __init__(self, timestamp: int) -> None:
        super().__init__(timestamp)
        self.timestamp = timestamp

    def describe(self) -> str:
        return f"There is no profiler data after {self.timestamp}."


class RuleEvaluationConditionMet(_Described):
    """A rule found what it looks for."""

    def __init__(self, rule_name: str, step: int, end_of_rule: bool = False) -> None:
        super().__init__(rule_name, step, end_of_rule)
        self.rule_name = rule_name
        self.step = step
        self.end_of_rule = end_of_rule

    def describe(self) -> str:
        # The form that old tools look for.
        return (
            f"Evaluation of the rule {self.rule_name} at step {self.step} resulted in the condition "
            "being met"
        )


class InsufficientInformationForRuleInvocation(_Described):
    """A rule lacks something it needs."""

    def __init__(self, rule_name: str, message: str) -> None:
        super().__init__(rule_name, message)
        self.rule_name = rule_name
        self.message = message

    def describe(self) -> str:
        return f"Rule {self.rule_name} cannot be evaluated: {self.message}"


class TrainingStopRequested(_Described):
    """Somebody who watches the run asks the training to stop; `rule` says why."""

    def __init__(self, rule: str, step: int, message: str = "") -> None:
        super().__init__(rule, step, message)
        self.rule = rule
        self.step = step
        self.message = message

    def describe(self) -> str:
        text = f"Rule {self.rule} asked at step {self.step} for the training to stop."
        return f"{text} {self.message}" if self.message else text
