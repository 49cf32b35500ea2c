"""One statistic of many tensors over many steps, as one array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smdebug.frame import _import

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Matrix:
    """One row per tensor, one column per step.

    The arrays share the memory that was read into; nothing is copied.
    """

    def __init__(
        self,
        reduction: str,
        values: npt.NDArray[Any],
        present: npt.NDArray[np.bool_] | None,
        tensors: list[str],
        steps: npt.NDArray[np.int64],
    ) -> None:
        self.reduction = reduction
        self.values = values
        self.tensors = tensors
        self.steps = steps
        self._present = present

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        """Which numbers are there: tells one that is missing from a NaN that was recorded."""
        if self._present is None:
            import numpy as np

            self._present = np.ones(self.values.shape, np.bool_)
        return self._present

    @property
    def complete(self) -> bool:
        """Whether every tensor has its number at every step."""
        return self._present is None or bool(self._present.all())

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with a row per tensor and a column per step; it shares the memory."""
        pd = _import("pandas", "to_pandas()")
        index = pd.Index(self.tensors, name="tensor")
        columns = pd.Index(self.steps, name="step")
        return pd.DataFrame(self.values, index=index, columns=columns, copy=False)

    def __repr__(self) -> str:
        rows, columns = self.values.shape
        return f"<Matrix of {self.reduction}: {rows} tensors, {columns} steps, {self.values.dtype}>"
