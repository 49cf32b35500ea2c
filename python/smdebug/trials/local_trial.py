"""Runs in a directory, for tools written for the original."""

from smdebug.open_trial import LocalTrial

__all__ = ["LocalTrial"]
