"""Runs, for tools written for the original."""

from smdebug.trial import Trial

__all__ = ["Trial"]
