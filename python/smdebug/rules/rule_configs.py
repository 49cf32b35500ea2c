"""One function per built-in rule: its configuration, as the SageMaker SDK describes rules.

Each call gives a fresh copy of the rule part and of the collections that the rule asks the hook to
save. `smdebug.rules.create_rule` makes a rule of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from smdebug import _core

_EVERY_500 = {"save_interval": "500"}
_EVERY_5 = {"save_interval": "5"}

# The collections that a rule asks for, with their parameters; rules without any read what is there.
COLLECTIONS: dict[str, dict[str, dict[str, str]]] = {
    "AllZero": {},
    "CheckInputImages": {
        "input_image": {"include_regex": ".*hybridsequential0_input_0", **_EVERY_500}
    },
    "ClassImbalance": {},
    "Confusion": {},
    "CreateXgboostReport": {
        "metrics": _EVERY_5,
        "feature_importance": _EVERY_5,
        "hyperparameters": {"save_steps": "0"},
        "predictions": _EVERY_5,
        "labels": _EVERY_5,
    },
    "DeadRelu": {"relu_output": {"include_regex": ".*relu_output", **_EVERY_500}},
    "ExplodingTensor": {},
    "FeatureImportanceOverweight": {"feature_importance": _EVERY_500},
    "LossNotDecreasing": {"losses": _EVERY_500},
    "NLPSequenceRatio": {"input_sequence": {"include_regex": ".*embedding0_input_0", **_EVERY_500}},
    "Overfit": {},
    "Overtraining": {},
    "PoorWeightInitialization": {"relu_input": {"include_regex": ".*relu_input", **_EVERY_500}},
    "SaturatedActivation": {},
    "SimilarAcrossRuns": {},
    "StalledTrainingRule": {},
    "TensorVariance": {},
    "TreeDepth": {},
    "UnchangedTensor": {},
    "VanishingGradient": {"gradients": _EVERY_500},
    "WeightUpdateRatio": {"weights": _EVERY_500},
}


def _configuration(
    rule: str, collections: Mapping[str, Mapping[str, str]] | None = None
) -> Callable[[], dict[str, Any]]:
    asked = COLLECTIONS[rule] if collections is None else collections

    def configuration() -> dict[str, Any]:
        made: dict[str, Any] = {
            "DebugRuleConfiguration": {
                "RuleConfigurationName": rule,
                "RuleParameters": {"rule_to_invoke": rule},
            }
        }
        if asked:
            made["CollectionConfigurations"] = [
                {"CollectionName": name, "CollectionParameters": dict(parameters)}
                for name, parameters in asked.items()
            ]
        return made

    configuration.__doc__ = f"The configuration of the rule {rule}."
    return configuration


all_zero = _configuration("AllZero")
check_input_images = _configuration("CheckInputImages")
class_imbalance = _configuration("ClassImbalance")
confusion = _configuration("Confusion")
create_xgboost_report = _configuration("CreateXgboostReport")
dead_relu = _configuration("DeadRelu")
exploding_tensor = _configuration("ExplodingTensor")
feature_importance_overweight = _configuration("FeatureImportanceOverweight")
loss_not_decreasing = _configuration("LossNotDecreasing")
nlp_sequence_ratio = _configuration("NLPSequenceRatio")
overfit = _configuration("Overfit")
overtraining = _configuration("Overtraining")
poor_weight_initialization = _configuration("PoorWeightInitialization")
saturated_activation = _configuration("SaturatedActivation")
similar_across_runs = _configuration("SimilarAcrossRuns")
stalled_training_rule = _configuration("StalledTrainingRule")
tensor_variance = _configuration("TensorVariance")
tree_depth = _configuration("TreeDepth")
unchanged_tensor = _configuration("UnchangedTensor")
vanishing_gradient = _configuration("VanishingGradient")
weight_update_ratio = _configuration("WeightUpdateRatio")


def __getattr__(name: str) -> Callable[[], dict[str, Any]]:
    """Rules that the original lacks ask for what the core's table says."""
    rows: Any = _core.rule_table()
    row = next((row for row in rows if row["snake_name"] == name), None)
    if row is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _configuration(row["name"], {c["name"]: c["parameters"] for c in row["collections"]})
