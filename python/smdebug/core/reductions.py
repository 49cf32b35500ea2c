"""Names of stored reductions, for tools written for the original."""

from __future__ import annotations

import re

from smdebug._core import REDUCTION_PREFIX, parse_reduction_name, reduction_tensor_name
from smdebug.exceptions import SMDebugValueError

REDUCTIONS_PREFIX = REDUCTION_PREFIX


def get_reduction_tensor_name(
    tensorname: str, reduction_name: str, abs: bool, remove_colon_index: bool = True
) -> str:
    """The name under which a reduction is stored; `:0` and the like are dropped unless kept."""
    if remove_colon_index:
        tensorname = re.sub(r":\d+", "", tensorname)
    return reduction_tensor_name(reduction_name, abs, tensorname)


def reverse_reduction_tensor_name(reduction_tensor_name: str) -> tuple[str, str, bool]:
    """(tensor, reduction, absolute) of such a name."""
    parts = parse_reduction_name(reduction_tensor_name)
    if parts is None:
        raise SMDebugValueError(f"'{reduction_tensor_name}' is not the name of a reduction.")
    operation, absolute, tensor = parts
    return tensor, operation, absolute


__all__ = ["REDUCTIONS_PREFIX", "get_reduction_tensor_name", "reverse_reduction_tensor_name"]
