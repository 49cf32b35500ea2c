"""Records boosting with XGBoost: `xgboost.train(..., callbacks=[Hook("run")])`."""

from smdebug import CollectionKeys, ReductionConfig, SaveConfig, SaveConfigMode, modes
from smdebug.collection import Collection
from smdebug.open_trial import create_trial
from smdebug.xgboost.hook import Hook
from smdebug.xgboost.singleton_utils import del_hook, get_hook, set_hook

__all__ = [
    "Collection",
    "CollectionKeys",
    "Hook",
    "ReductionConfig",
    "SaveConfig",
    "SaveConfigMode",
    "create_trial",
    "del_hook",
    "get_hook",
    "modes",
    "set_hook",
]
