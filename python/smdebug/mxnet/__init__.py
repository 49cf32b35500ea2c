"""Records models of MXNet Gluon: `hook = Hook("run"); hook.register_block(net)`."""

from smdebug import CollectionKeys, ReductionConfig, SaveConfig, SaveConfigMode, modes
from smdebug.mxnet.collection import Collection
from smdebug.mxnet.hook import Hook
from smdebug.mxnet.singleton_utils import del_hook, get_hook, set_hook
from smdebug.open_trial import create_trial

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
