"""smdebug: see inside training.

Records tensors of a running training job at almost no cost and finds what is wrong with it.
"""

from smdebug._core import VERSION as __version__
from smdebug._core import ModeKeys as modes
from smdebug._core import ReductionConfig, SaveConfig, SaveConfigMode
from smdebug.collection import Collection, CollectionKeys
from smdebug.hook import Hook
from smdebug.open_trial import create_trial
from smdebug.singleton import del_hook, get_hook, set_hook

__all__ = [
    "Collection",
    "CollectionKeys",
    "Hook",
    "ReductionConfig",
    "SaveConfig",
    "SaveConfigMode",
    "__version__",
    "create_trial",
    "del_hook",
    "get_hook",
    "modes",
    "set_hook",
]
