"""Records models of PyTorch: `hook = Hook("run"); hook.register_module(model)`."""

from smdebug import CollectionKeys, ReductionConfig, SaveConfig, SaveConfigMode, modes
from smdebug.open_trial import create_trial
from smdebug.pytorch.collection import Collection
from smdebug.pytorch.hook import Hook
from smdebug.pytorch.singleton_utils import del_hook, get_hook, set_hook

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
