"""For old tools: see smdebug.tensor."""

from smdebug.tensor import StepState, Tensor

__all__ = ["StepState", "Tensor"]
