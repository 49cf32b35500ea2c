"""Records monitored sessions of TensorFlow, also those that Estimators run."""

from smdebug.tensorflow.session.hook import EstimatorHook, SessionHook

__all__ = ["EstimatorHook", "SessionHook"]
