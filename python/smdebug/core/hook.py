"""The base of hooks, for tools written for the original."""

from smdebug.hook import BaseHook

__all__ = ["BaseHook"]
