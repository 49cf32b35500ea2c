"""Runs in a directory, for tools written for the original."""

from smdebug.trial import LocalTrial

__all__ = ["LocalTrial"]
