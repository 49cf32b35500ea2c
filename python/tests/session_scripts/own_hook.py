"""Records by itself."""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import smdebug.tensorflow as smd
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
hook = smd.SessionHook(sys.argv[1])
loss = tf.identity(tf.get_variable("w", ()), name="loss")
hook.add_to_collection("losses", loss)
with tf.train.SingularMonitoredSession(hooks=[hook]) as session:
    session.run(loss)
print(smd.get_hook() is hook)
