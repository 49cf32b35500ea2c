"""The collections of a hook or a run, for tools written for the original."""

from smdebug.collection import CollectionManager

__all__ = ["CollectionManager"]
