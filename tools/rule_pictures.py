"""Which runs of the fault bench show what a built-in rule sees, for `rule_pages.py`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import scaled_training

# Stands in parameters for the directory of the healthy run.
HEALTHY_RUN = "{healthy}"


class Recording(Protocol):
    """Records a training into a folder."""

    def __call__(self, out_dir: Path, *, is_sick: bool) -> None: ...


@dataclass(frozen=True)
class Picture:
    """A fault of the bench that a rule sees, and what to draw of it."""

    fault: int
    trainer: str
    form: str = ""
    # Instead of the bench, whose number is 0 then; `form` says what is wrong.
    recording: Recording | None = None
    # What the rule is told, where the defaults do not suit a short training.
    parameters: dict[str, str] = field(default_factory=dict)
    # What the first hit is about, unless said otherwise.
    tensor: str = ""
    healthy_tensor: str = ""  # where the healthy run calls it otherwise
    reduction: str = ""
    mode: str = ""
    log: bool = False


# By the name of the rule. Adding a picture is adding an entry and running `rule_pages.py --pictures`;
# an entry waits for its rule.
PICTURES: dict[str, Picture] = {
    "ActivationScale": Picture(5, "mlp", "wide", reduction="std"),
    "AdamDenominators": Picture(35, "regressor", "large", reduction="mean"),
    "AllZero": Picture(8, "mlp", parameters={"tensor_regex": "relu_output"}, reduction="abs_max"),
    "AttentionEntropyCollapse": Picture(29, "transformer", reduction="l2"),
    "CheckInputImages": Picture(9, "cnn", reduction="mean"),
    "ClassImbalance": Picture(14, "mlp", reduction="mean"),
    "Confusion": Picture(
        15, "mlp", parameters={"min_diag": "0", "max_off_diag": "0.8"}, reduction="mean"
    ),
    "DeadRelu": Picture(8, "mlp", reduction="mean"),
    "DeadUnits": Picture(8, "mlp", reduction="mean"),
    "ExplodingTensor": Picture(22, "mlp", reduction="abs_max"),
    "FeatureImportanceOverweight": Picture(34, "trees", "feature"),
    "GeneralizationGap": Picture(16, "cnn"),
    "GradientNotReset": Picture(21, "regressor", reduction="l2", log=True),
    "GradientSpike": Picture(25, "mlp", reduction="l2"),
    "GradientSynchronization": Picture(28, "ranks", reduction="l2"),
    "GrowthDivergence": Picture(3, "mlp", reduction="abs_mean", log=True),
    "IdenticalUnits": Picture(4, "mlp", "constant", reduction="std"),
    "InitialLoss": Picture(5, "mlp", "wide"),
    "InputRange": Picture(9, "mlp", reduction="std"),
    "LabelBalance": Picture(14, "mlp", reduction="mean"),
    "LearningRate": Picture(1, "mlp"),
    "LossAtChance": Picture(13, "mlp"),
    "LossNotDecreasing": Picture(
        *(8, "mlp"),
        parameters={"mode": "TRAIN", "num_steps": "50", "increase_threshold_percent": "90"},
    ),
    "LossScaleCollapse": Picture(
        *(0, "regression in half precision", "an input too large for half precision"),
        recording=scaled_training.record,
        tensor="scalar/loss_scale",
        log=True,
    ),
    "LossSpike": Picture(25, "mlp"),
    "LostUpdates": Picture(24, "mlp", reduction="l2"),
    "MostlyZeroGradients": Picture(8, "mlp", reduction="abs_mean", log=True),
    "NLPSequenceRatio": Picture(30, "transformer", reduction="mean"),
    "NegativeLoss": Picture(11, "mlp", "missing", healthy_tensor="CrossEntropyLoss_output_0"),
    "NonFiniteOrigin": Picture(22, "mlp", reduction="abs_max"),
    "OutputRange": Picture(11, "mlp", "double", reduction="max"),
    "OverflowHeadroom": Picture(23, "mlp", reduction="abs_max", log=True),
    "Overfit": Picture(16, "cnn"),
    "Overtraining": Picture(
        *(17, "regressor"), parameters={"patience_train": "100", "patience_validation": "20"}
    ),
    "PersistentHighLoss": Picture(3, "regressor", log=True),
    "PoorWeightInitialization": Picture(
        *(5, "mlp", "wide"), parameters={"distribution_range": "0.00001"}, reduction="variance"
    ),
    "RankDivergence": Picture(26, "ranks", reduction="l2"),
    "RelativeVanishingGradient": Picture(6, "mlp", reduction="l2", log=True),
    "ResumeContinuity": Picture(33, "mlp"),
    "SaturatedActivation": Picture(
        *(7, "lstm"),
        parameters={"threshold_inactivity": "50", "threshold_layer": "5"},
        reduction="abs_mean",
    ),
    "SimilarAcrossRuns": Picture(
        *(25, "mlp"),
        parameters={"other_trials": HEALTHY_RUN, "collection_names": "weights"},
        reduction="l2",
    ),
    "SwappedClasses": Picture(15, "mlp", reduction="mean"),
    "TensorVariance": Picture(
        5, "mlp", "wide", parameters={"collection_names": "weights", "max_threshold": "5"}
    ),
    "TreeDepth": Picture(34, "trees", "depth", reduction="max"),
    "UnchangedTensor": Picture(
        19, "mlp", parameters={"collection_names": "weights"}, reduction="l2"
    ),
    "UpdateSize": Picture(1, "mlp", reduction="abs_mean", log=True),
    "VanishingGradient": Picture(8, "mlp", log=True),
    "WeightCollapse": Picture(18, "mlp", reduction="l2", log=True),
    "WeightUpdateRatio": Picture(1, "mlp", reduction="abs_mean", log=True),
    "WeightsNotUpdated": Picture(19, "mlp", reduction="l2"),
}

# Why the others have none, in a sentence of their page.
WITHOUT_PICTURE: dict[str, str] = {
    "CreateXgboostReport": "There is no picture here: the rule judges nothing, it writes a page with pictures of the training instead.",
    "LayerStopped": "There is no picture here: the demo draws such a run, at the top of the README.",
    "StalledTrainingRule": "There is no picture here: the rule looks at the clock while a run grows, and in a stalled run there is nothing to draw.",
    "TrainingPause": "There is no picture here: the rule looks at the times of steps, which are no tensor.",
}
