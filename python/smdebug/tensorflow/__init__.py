"""Records graphs of TensorFlow: `hook = SessionHook("run")`, and give it to a MonitoredSession."""

from smdebug import CollectionKeys, ReductionConfig, SaveConfig, SaveConfigMode, modes
from smdebug.singleton import del_hook, get_hook, set_hook
from smdebug.tensorflow.collection import Collection
from smdebug.tensorflow.estimator import EstimatorHook
from smdebug.tensorflow.session import SessionHook
from smdebug.trial import create_trial

__all__ = [
    "Collection",
    "CollectionKeys",
    "EstimatorHook",
    "ReductionConfig",
    "SaveConfig",
    "SaveConfigMode",
    "SessionHook",
    "create_trial",
    "del_hook",
    "get_hook",
    "modes",
    "set_hook",
]
