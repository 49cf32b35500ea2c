"""The hook of scripts that do not know of it: it joins fit, evaluate and predict, and tapes."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from typing import Any

import smdebug_activation

from smdebug import automatic, singleton
from smdebug.tensorflow.keras.callback import CallbackMethods, callback_classes
from smdebug.tensorflow.keras.hook import KerasRecorder
from smdebug.zcc import Patches, patched

METHODS = ("fit", "evaluate", "predict")
# FrameworkParameters of the JSON file: Keras says itself which mode it is in.
OPTIONS: dict[str, type] = {"auto_mode": bool}
# What `smdebug run` calls inputs and outputs: those of layers, beside those of the model.
PATTERNS = {"inputs": [r".+/inputs(_\d+)?$"], "outputs": [r".+/outputs(_\d+)?$"]}


class AutomaticRecorder(automatic.GivingWay, KerasRecorder):
    """A script that asks for the hook of the process may use it, too."""

    def set_option(self, name: str, value: Any) -> None:
        """Nothing to choose."""


@functools.cache
def _hook_class(bases: tuple[type, ...]) -> type[AutomaticRecorder]:
    recorder: type[AutomaticRecorder] = AutomaticRecorder
    if "SMDEBUG_PLAN" in os.environ:
        from smdebug.tensorflow.keras.rehearsal import RehearsalRecorder

        recorder = RehearsalRecorder
    about = {"__module__": __name__}
    return type("AutomaticHook", (recorder, CallbackMethods, *bases), about)


class Discovery:
    """Gives the hook to models of one Keras package; it is made with the first of them."""

    def __init__(self, patches: Patches) -> None:
        self._patches = patches
        self._pid = os.getpid()

    def undo(self) -> None:
        """Keras is as it was, and what was recorded is complete."""
        self._patches.undo()
        hook = singleton.current_hook()
        if isinstance(hook, AutomaticRecorder):
            hook.close()

    def hook(self) -> AutomaticRecorder | None:
        """The hook; None: the script records by itself, or this is a child of what records."""
        if os.getpid() != self._pid:
            return None
        current = singleton.current_hook()
        if current is None:
            current = automatic.make_hook(_hook_class(callback_classes()), OPTIONS)
            automatic.rename_patterns(current, PATTERNS)
            current.on_replaced = self._patches.undo
        if not isinstance(current, AutomaticRecorder):
            self._patches.undo()
            return None
        return current

    def joined(self, callbacks: Any) -> Any:
        """The callbacks of a call and the hook, unless the script has a hook among them."""
        if callbacks is not None and not isinstance(callbacks, list | tuple):
            if hasattr(callbacks, "set_params") and hasattr(callbacks, "callbacks"):
                return callbacks  # of fit, which evaluates
            callbacks = [callbacks]
        given = list(callbacks or ())
        if any(isinstance(callback, KerasRecorder) for callback in given):
            return callbacks
        hook = self.hook()
        return callbacks if hook is None else [*given, hook]

    # ---- what is patched

    def patch_model(self, model: type) -> None:
        """fit, evaluate and predict of all models."""
        for name in METHODS:
            self._patches.replace(model, name, self._method(getattr(model, name)))

    def _method(self, original: Any) -> Any:
        signature = inspect.signature(original)

        @functools.wraps(original)
        def method(*args: Any, **kwargs: Any) -> Any:
            try:
                bound = signature.bind(*args, **kwargs)
                bound.arguments["callbacks"] = self.joined(bound.arguments.get("callbacks"))
            except TypeError:  # the call is wrong, and the original says so
                return original(*args, **kwargs)
            except Exception as error:
                self._give_up(error)
                return original(*args, **kwargs)
            return original(*bound.args, **bound.kwargs)

        return method

    def patch_tape(self, tape_class: type) -> None:
        """Tapes that are entered outside of Keras are steps of a loop."""
        original = tape_class.__enter__  # type: ignore[attr-defined]

        @functools.wraps(original)
        def enter(tape: Any) -> Any:
            if type(tape) is tape_class and not _is_of_keras(sys._getframe(1)):
                try:
                    hook = self.hook()
                    if hook is not None and not hook.is_in_fit:
                        hook.wrap_tape(tape)
                except Exception as error:
                    self._give_up(error)
                if type(tape) is not tape_class:  # it comes back here
                    return type(tape).__enter__(tape)  # type: ignore[attr-defined]
            return original(tape)

        self._patches.replace(tape_class, "__enter__", enter)

    def _give_up(self, error: Exception) -> None:
        self._patches.undo()
        smdebug_activation.report(error)


def patch(package: Any) -> Discovery:
    """Records the models of a Keras package from now on."""
    with Patches() as patches:
        discovery = Discovery(patches)
        discovery.patch_model(package.Model)
        if hasattr(package, "config") and package.config.backend() == "torch":
            # Its models are modules, which would be found a second time, under other names.
            modules = patched("torch")
            if modules is not None:
                modules.stand_aside()
        tensorflow = sys.modules.get("tensorflow")
        tape_class = getattr(tensorflow, "GradientTape", None)
        # Two packages of Keras may be there; one of them patches the tape.
        if tape_class is not None and not hasattr(tape_class.__enter__, "__wrapped__"):
            discovery.patch_tape(tape_class)
    return discovery


def _is_of_keras(frame: Any) -> bool:
    root = frame.f_globals.get("__name__", "").partition(".")[0]
    return root in ("keras", "tf_keras")
