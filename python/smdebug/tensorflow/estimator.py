"""The hook for Estimators, which run monitored sessions."""

from smdebug.tensorflow.session import EstimatorHook

__all__ = ["EstimatorHook"]
