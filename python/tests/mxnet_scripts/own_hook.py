"""A script that makes its own hook: `own_hook.py OUT`. Prints the class of the hook of the process."""

import sys

import mxnet as mx
import smdebug.mxnet as smd

net = mx.gluon.nn.Dense(2, in_units=3)
net.initialize()
if sys.argv[2:] == ["late"]:
    net(mx.nd.ones((1, 3))).wait_to_read()
hook = smd.Hook(sys.argv[1], save_all=True, save_config=smd.SaveConfig(save_interval=1))
hook.register_block(net)
for _ in range(2):
    net(mx.nd.ones((1, 3))).wait_to_read()
print(type(smd.get_hook()).__name__)
