"""Runs in an object store, for tools written for the original."""

from smdebug.open_trial import S3Trial

__all__ = ["S3Trial"]
