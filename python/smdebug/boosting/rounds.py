"""What a framework tells about a round of boosting, and how tensors about features are named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

# Metrics that get better by growing; all others are losses.
INCREASING = frozenset({"auc", "aucpr", "map", "ndcg", "pre", "interval-regression-accuracy"})
Numbers = Any  # an array


def is_loss(metric: str) -> bool:
    """Whether a metric of XGBoost gets better by shrinking: `rmse`, but not `ndcg@5-`."""
    return metric.partition("@")[0].rstrip("-") not in INCREASING


class Unavailable(Exception):
    """The framework does not tell this about the model; the text says why."""


class Round(Protocol):
    """What a framework tells about a round that is over."""

    importance_types: Sequence[str]
    tree_columns: Sequence[str]

    def metrics(self) -> Iterable[tuple[str, float, bool]]:
        """(name, value, whether it is a loss)."""

    def features(self) -> Sequence[str]:
        """Names of the features; empty: there is no model to look at."""

    def predictions(self) -> Numbers | None:
        """Of the validation data; None: there is none."""

    def labels(self) -> Numbers | None:
        """Of the validation data; None: there are none."""

    def importances(self, kind: str) -> dict[str, Any]:
        """The scores of features that are used, as the framework gives them."""

    def trees(self) -> dict[str, Any]:
        """The nodes of the trees that the round has added, by column."""

    def shap(self) -> Numbers | None:
        """Contributions to the predictions of the training data, the intercept last."""


class FeatureNames:
    """The names of tensors that depend on features. Made once for the features of a model."""

    def __init__(self, features: Sequence[str], kinds: Sequence[str]) -> None:
        self.features = list(features)
        # A feature of this name takes the place of the intercept.
        columns = [*features] if "bias" in features else [*features, "bias"]
        self.full = [f"full_shap/{name}" for name in columns]
        self.average = [f"average_shap/{name}" for name in columns]
        self.mean = [f"mean_shap/{name}" for name in columns]
        self.importance = [
            f"feature_importance/{kind}/{feature}" for kind in kinds for feature in features
        ]
