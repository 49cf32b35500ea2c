"""Where old scripts look for functions about tensors of PyTorch; ours are in `tensors` and `names`."""

from smdebug.pytorch.tensors import loss_in, tensors_in

__all__ = ["loss_in", "tensors_in"]
