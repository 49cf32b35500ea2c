"""PyTorch: finds the model and the loss of a script while it trains.

Nothing is made before the first forward of a model, so launchers and data loaders that import
PyTorch stay silent. A call is an outermost one if no other module's call is below it on the stack:
that holds in every thread and after every exception, and costs nothing between calls.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import smdebug_activation
import torch
from torch import nn
from torch.nn.modules import module as torch_module
from torch.nn.modules.loss import _Loss

from smdebug import singleton
from smdebug.zcc import Patches

if TYPE_CHECKING:
    from smdebug.pytorch.automatic import AutomaticHook

# Losses that are not called so.
LOSS_FUNCTIONS = frozenset(
    {"cross_entropy", "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div"}
)
# Forwards of the first model after which no more models and losses are looked for.
MOST_FORWARDS = 16

_CALL = nn.Module._call_impl.__code__
_is_compiling = torch.compiler.is_compiling
_graph_task_id: Callable[[], int] = getattr(torch._C, "_current_graph_task_id", lambda: -1)


def patch() -> Discovery:
    """Looks for models from now on."""
    with Patches() as patches:
        discovery = Discovery(patches)
        _patch_losses(discovery, patches)
        _patch_compilation(discovery, patches)
        patches.replace(torch.autograd, "backward", _backward(discovery, torch.autograd.backward))
        discovery.begin()
    return discovery


class Discovery:
    """What is known of the script: its models, and whether it has computed a loss."""

    def __init__(self, patches: Patches) -> None:
        self._patches = patches
        self._handles: list[Any] = []
        self._pid: int | None = None  # of the process whose hook it is
        self._forwards = 0
        self._loss_known = False
        self.compiles = False  # modules are compiled, and the compiler looks into global hooks
        self.hook: AutomaticHook | None = None

    def begin(self) -> None:
        """Looks at the calls of all modules."""
        arguments = inspect.signature(torch_module.register_module_forward_hook).parameters
        with_kwargs = {"with_kwargs": True} if "with_kwargs" in arguments else {}
        self._handles = [
            torch_module.register_module_forward_pre_hook(self._before_forward),
            torch_module.register_module_forward_hook(self._after_forward, **with_kwargs),
        ]
        self._patches.add(self.end)

    def end(self) -> None:
        """Calls of modules cost nothing any more."""
        handles, self._handles = self._handles, []
        for handle in handles:
            handle.remove()
            # Left behind by PyTorch 2.13; every call of a module would stay a slow one.
            getattr(torch_module, "_global_forward_hooks_with_kwargs", {}).pop(handle.id, None)

    def stand_aside(self) -> None:
        """PyTorch is as it was."""
        self._patches.undo()

    def undo(self) -> None:
        """The same, and what was recorded is complete."""
        self.stand_aside()
        hook, self.hook = self.hook, None
        if hook is not None:
            hook.close()

    # ---- models

    def _before_forward(self, module: nn.Module, args: Any) -> None:
        if not _is_compiling() and self._is_free() and not _is_inside(sys._getframe(1), 1):
            self._guarded(self._look, module, args)

    def _look(self, module: nn.Module, args: Any) -> None:
        if isinstance(module, _Loss) or getattr(module, "_is_replica", False):
            return
        if self.hook is not None and self.hook.knows(module):
            self._count(module)
        elif _is_trained(module):
            self.found(module, args)

    def found(self, module: nn.Module, args: Any = None) -> None:
        """A model that is about to run; with `args`, its own callbacks miss this forward."""
        if self.hook is None and singleton.current_hook() is not None:
            self.stand_aside()  # the script records by itself
            return
        if self.hook is None:
            from smdebug.pytorch.automatic import make_hook

            self.hook = make_hook()
            self._pid = os.getpid()
            self.hook.on_replaced = self.stand_aside
        if self.compiles:
            self.end()
        self.hook.add_model(module, args)

    def found_by_trainer(self, module: nn.Module) -> None:
        """A model whose trainer says when steps begin."""
        self._guarded(self.found, module)
        self.end()
        if self.hook is not None:
            self.hook.leave_steps_to_caller()

    def _count(self, module: nn.Module) -> None:
        """The first model runs again: what belongs to a step has been seen."""
        if self.hook is None or not self.hook.is_first(module):
            return
        self._forwards += 1
        if self._loss_known or self._forwards >= MOST_FORWARDS:
            self.end()

    def before_compiled(self, module: nn.Module) -> None:
        """Before a compiled module runs, which global hooks do not see or would disturb."""
        if _is_compiling() or not self._is_free() or _is_inside(sys._getframe(2), 0):
            return
        if (self.hook is None or not self.hook.knows(module)) and _is_trained(module):
            self._guarded(self.found, module)

    # ---- losses

    def _after_forward(self, module: nn.Module, args: Any, *rest: Any) -> None:
        output = rest[-1]
        if _is_compiling() or self.hook is None or isinstance(module, _Loss):
            return
        if not _is_number(output) or not output.requires_grad or self.hook.knows(module):
            return
        if next(module.parameters(), None) is not None or _is_inside(sys._getframe(1), 1):
            return
        if self._is_free():
            self._loss_known = True
            kwargs = rest[0] if len(rest) > 1 else {}
            self._guarded(self.hook.add_loss, module, args, kwargs, output)

    def after_module_loss(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """A loss of PyTorch's own was called as a module."""
        if self.hook is None or _is_inside(sys._getframe(2), 0) or not self._is_free():
            return
        self._loss_known = True
        self._guarded(self.hook.save_module_loss, module, args, kwargs, output)

    def after_function(self, name: str, output: Any) -> None:
        """A loss was called as a function."""
        if self.hook is None or not isinstance(output, torch.Tensor):
            return
        if self._is_free() and not _is_inside(sys._getframe(2), 0):
            self._loss_known = True
            self._guarded(self.hook.save_loss, name, output)

    def before_backward(self, tensors: Any) -> None:
        """A number that is differentiated is a loss, unless it comes straight from a known one."""
        if self.hook is None or not self._is_free():
            return
        self._loss_known = True
        for tensor in [tensors] if isinstance(tensors, torch.Tensor) else tensors:
            if _is_number(tensor) and self.hook.is_new_loss(tensor):
                self._guarded(self.hook.save_loss, "loss", tensor)

    # ---- failures

    def _is_free(self) -> bool:
        """Not in backward, where modules run again, nor in a child of what records, nor in a trace."""
        return (
            _graph_task_id() == -1
            and self._pid in (None, os.getpid())
            and not torch._C._is_tracing()
            and not torch.compiler.is_exporting()
        )

    def _guarded(self, function: Callable[..., None], *args: Any) -> None:
        try:
            function(*args)
        except Exception as error:
            self.stand_aside()
            smdebug_activation.report(error)


def _is_trained(module: nn.Module) -> bool:
    return any(parameter.requires_grad for parameter in module.parameters())


def _is_number(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.numel() == 1


def _is_inside(frame: types.FrameType | None, allowed: int) -> bool:
    """Whether more calls of modules, or of losses, are on the stack than allowed."""
    while frame is not None:
        code = frame.f_code
        if code is _CALL or code is _FUNCTION:
            if allowed == 0:
                return True
            allowed -= 1
        frame = frame.f_back
    return False


def _function(original: Any, name: str, compiling: Any, after: Any) -> Any:
    """A loss function that tells its result."""

    def loss(*args: Any, **kwargs: Any) -> Any:
        if compiling():
            return original(*args, **kwargs)
        result = original(*args, **kwargs)
        after(name, result)
        return result

    # With the globals of the original, TorchScript compiles the original's source instead.
    made = types.FunctionType(
        loss.__code__, original.__globals__, original.__name__, None, loss.__closure__
    )
    return functools.update_wrapper(made, original)


_FUNCTION = next(
    c for c in _function.__code__.co_consts if isinstance(c, types.CodeType) and c.co_name == "loss"
)


def _loss_functions() -> Iterator[tuple[str, Any]]:
    for name, function in list(vars(nn.functional).items()):
        is_loss = name.endswith("loss") or name in LOSS_FUNCTIONS
        if is_loss and not name.startswith("_") and isinstance(function, types.FunctionType):
            yield name, function


def _patch_losses(discovery: Discovery, patches: Patches) -> None:
    for name, function in _loss_functions():
        label = name if name.endswith("_loss") else f"{name}_loss"
        new = _function(function, label, _is_compiling, discovery.after_function)
        patches.replace(nn.functional, name, new)

    def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        result = super(_Loss, module).__call__(*args, **kwargs)
        if not _is_compiling():
            discovery.after_module_loss(module, args, kwargs, result)
        return result

    patches.replace(_Loss, "__call__", call)


def _patch_compilation(discovery: Discovery, patches: Patches) -> None:
    torch_compile, module_compile = torch.compile, nn.Module.compile

    @functools.wraps(torch_compile)
    def compile(*args: Any, **kwargs: Any) -> Any:
        compiled = torch_compile(*args, **kwargs)
        wrapper = type(compiled)
        if wrapper.__name__ == "OptimizedModule":
            discovery.compiles = True
            if not hasattr(wrapper.__call__, "__wrapped__"):
                patches.replace(wrapper, "__call__", _call_of_wrapper(discovery, wrapper.__call__))
        return compiled

    @functools.wraps(module_compile)
    def compile_in_place(module: nn.Module, *args: Any, **kwargs: Any) -> None:
        module_compile(module, *args, **kwargs)
        discovery.compiles = True
        compiled: Any = module._compiled_call_impl

        def first_call(*args: Any, **kwargs: Any) -> Any:
            module._compiled_call_impl = compiled
            discovery.before_compiled(module)
            return compiled(*args, **kwargs)

        module._compiled_call_impl = first_call

    patches.replace(torch, "compile", compile)
    patches.replace(nn.Module, "compile", compile_in_place)


def _call_of_wrapper(discovery: Discovery, original: Any) -> Any:
    @functools.wraps(original)
    def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        discovery.before_compiled(module)
        return original(module, *args, **kwargs)

    return call


def _backward(discovery: Discovery, original: Any) -> Any:
    @functools.wraps(original)
    def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if not _is_compiling():
            discovery.before_backward(tensors)
        return original(tensors, *args, **kwargs)

    return backward
