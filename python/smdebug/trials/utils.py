"""Opens runs, for tools written for the original."""

from smdebug.open_trial import create_trial

__all__ = ["create_trial"]
