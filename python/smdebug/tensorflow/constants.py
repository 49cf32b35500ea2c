"""Keys of a train_step and what is saved anyway, under the names that old scripts import."""

from smdebug.tensorflow.collection import DEFAULT_COLLECTIONS

SMDEBUG_PREFIX = "smdebug_"
SMDEBUG_GRADIENTS_KEY = SMDEBUG_PREFIX + "gradients"
SMDEBUG_LAYER_OUTPUTS_KEY = SMDEBUG_PREFIX + "layer_outputs"
TF_DEFAULT_SAVED_COLLECTIONS = list(DEFAULT_COLLECTIONS)
