"""The hook for Estimators, which run monitored sessions."""

from __future__ import annotations

from smdebug.tensorflow.session import SessionHook

EstimatorHook = SessionHook

__all__ = ["EstimatorHook"]
