"""What to save, for tools written for the original."""

from smdebug._core import ReductionConfig, reduction_names

ALLOWED_REDUCTIONS = [name for name, is_norm in reduction_names() if not is_norm]
ALLOWED_NORMS = [name for name, is_norm in reduction_names() if is_norm]

__all__ = ["ALLOWED_NORMS", "ALLOWED_REDUCTIONS", "ReductionConfig"]
