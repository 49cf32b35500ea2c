"""Records models of Keras: `model.fit(..., callbacks=[KerasHook("run")])`.

What a `KerasHook` is depends on the Keras packages of the program, so it is made when asked for.
"""

from __future__ import annotations

from typing import Any

from smdebug.tensorflow.keras.hook import hook_class


def __getattr__(name: str) -> Any:
    if name == "KerasHook":
        return hook_class()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), "KerasHook"})


__all__ = ["KerasHook"]
