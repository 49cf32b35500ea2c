"""What is saved unless a script says more, under the names that old scripts import."""

from smdebug.xgboost.hook import Hook

DEFAULT_INCLUDE_COLLECTIONS = list(Hook.default_collections)
DEFAULT_SAVE_INTERVAL = Hook.default_save_interval
