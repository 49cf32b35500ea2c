"""What is saved unless a script says more, under the names that old scripts import."""

from smdebug.mxnet.hook import Hook

DEFAULT_INCLUDE_COLLECTIONS = list(Hook.default_collections)
