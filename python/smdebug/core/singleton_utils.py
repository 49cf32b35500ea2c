"""The hook of this process, for tools written for the original."""

from smdebug.singleton import del_hook, get_hook, set_hook

__all__ = ["del_hook", "get_hook", "set_hook"]
