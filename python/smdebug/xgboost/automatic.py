"""The hook of scripts that do not know of it: data and parameters come from the training itself."""

from __future__ import annotations

from smdebug.boosting.automatic import make_hook
from smdebug.xgboost.hook import Hook


class AutomaticHook(Hook):
    """Knows the data of a training as soon as the first round is over."""

    def meet(self, train_data: object, evals: object) -> None:
        """The matrices of a training; the last one that is not trained on validates."""
        others = [data for data, _ in evals or () if data is not train_data]  # type: ignore[attr-defined]
        self._data["train_data"] = train_data
        self._data["validation_data"] = others[-1] if others else None
        self._data.pop("shap_rows", None)

    def forget(self) -> None:
        """The training is over: its data may go."""
        self._data.clear()


def make_automatic_hook() -> AutomaticHook:
    """The hook that the job's JSON file describes."""
    return make_hook(AutomaticHook)
