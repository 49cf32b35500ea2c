"""The faults of the bench. Adding one is adding an entry to `FAULTS`.

`symptom.py` must know how to tell from the recorded run that the fault is real. The rules that are
expected to speak are those whose sentence about the run would be right.
"""

from __future__ import annotations

from faults import injection as inject
from faults.fault import Fault, Form

# Steps of TRAIN at which faults begin that do not begin at once.
ASCENT, DEATH, MIDDLE = 50, 60, 100
# A pause that no step of a healthy run comes near to.
PAUSE_SECS = 0.5
PAUSE_RULES = ("StalledTrainingRule", "TrainingPause")
# Families whose faults leave the loss curve as it is, or nearly so.
SILENT_NUMBERS = (19, 20, 21, 26, 27, 28, 33)
# Steps that a fault takes from its onset until it strikes, by number; findings until then are in time.
DEVELOPS_FOR = {23: 100}
# Other tensors that are right to blame, by number: the inputs are what saturates the layer.
ALSO_AT_FAULT = {7: "Net_input_0"}

_NAN = ("ExplodingTensor", "NonFiniteOrigin")
_STUCK = ("LossNotDecreasing", "LossAtChance", "PersistentHighLoss")
_EFFECT = ("WeightsNotUpdated", "UnchangedTensor", "WeightUpdateRatio")
_SPIKE = ("LossSpike", "GradientSpike")
_INIT = ("PoorWeightInitialization", "ActivationScale")
_IMAGE = "hybridsequential0_input_0"

FAULTS: tuple[Fault, ...] = (
    Fault(
        *(1, "high learning rate", "learning rate"),
        (*_NAN, *_SPIKE, "UpdateSize", "LearningRate", "GrowthDivergence"),
        "diverged",
        (
            Form(("mlp", "circles", "ranks"), factors={"lr": 100}),
            Form(("regressor", "lstm", "transformer", "cnn"), factors={"lr": 100}),
        ),
    ),
    Fault(
        *(2, "low learning rate", "learning rate"),
        (*_STUCK, "WeightUpdateRatio", "UpdateSize", "LearningRate", "LostUpdates"),
        "stuck",
        (
            Form(
                ("mlp", "circles", "regressor", "cnn", "lstm", "transformer", "ranks"),
                factors={"lr": 1e-6},
            ),
        ),
    ),
    Fault(
        *(3, "flipped update sign", "learning rate"),
        (*_NAN, *_STUCK, *_SPIKE, "GrowthDivergence"),
        "rose",
        (
            Form(
                ("mlp", "regressor", "cnn", "lstm", "transformer"),
                injection=lambda: inject.Ascend(ASCENT),
                onset=ASCENT,
            ),
        ),
    ),
    Fault(
        *(4, "zero or constant initialisation", "initialisation"),
        (
            *("AllZero", "UnchangedTensor", "VanishingGradient", "MostlyZeroGradients"),
            *("IdenticalUnits", *_INIT),
        ),
        "units_alike",
        (
            Form(("mlp", "regressor", "cnn"), injection=lambda: inject.Constant(0.0), name="zero"),
            Form(("mlp", "regressor"), injection=lambda: inject.Constant(0.1), name="constant"),
        ),
    ),
    Fault(
        *(5, "initialisation too wide or narrow", "initialisation"),
        (*_INIT, "TensorVariance", "InitialLoss"),
        "uneven_scale",
        (
            Form(
                ("mlp", "regressor", "cnn"),
                injection=lambda: inject.Scaled(("layers.1.",), 30),
                tensor="layers.1.",
                name="wide",
            ),
            Form(
                ("mlp", "cnn"),
                injection=lambda: inject.Scaled(("layers.1.",), 1 / 30),
                tensor="layers.1.",
                name="narrow",
            ),
        ),
    ),
    Fault(
        *(6, "deep sigmoid stack", "activations"),
        ("VanishingGradient", "RelativeVanishingGradient", "PoorWeightInitialization"),
        "vanishing",
        (
            Form(
                ("mlp", "regressor"),
                {"activation": "sigmoid", "depth": 12, "width": 16},
                tensor="layers.0.",
            ),
        ),
    ),
    Fault(
        *(7, "saturated tanh", "activations"),
        ("SaturatedActivation", "InputRange", "ActivationScale", "PoorWeightInitialization"),
        "saturated",
        (
            Form(("mlp", "regressor"), {"activation": "tanh", "input_scale": 100.0}, tensor="tanh"),
            Form(("lstm",), {"input_scale": 100.0}, tensor="tanh"),
        ),
    ),
    Fault(
        *(8, "dying ReLU", "activations"),
        ("DeadRelu", "DeadUnits", "MostlyZeroGradients", "AllZero", "VanishingGradient"),
        "dead_units",
        (
            Form(
                ("mlp", "circles", "regressor", "ranks"),
                injection=lambda: inject.DeadBias("layers.1.fc", -10, DEATH),
                tensor="layers.1.",
                onset=DEATH,
            ),
            Form(
                ("cnn",),
                injection=lambda: inject.DeadBias("layers.1.conv", -10, DEATH),
                tensor="layers.1.",
                onset=DEATH,
            ),
        ),
    ),
    Fault(
        *(9, "missing normalisation", "input"),
        ("CheckInputImages", "InputRange", "ActivationScale", "PoorWeightInitialization"),
        "large_inputs",
        (
            Form(("cnn",), {"input_scale": 64.0, "input_offset": 128.0}, tensor=_IMAGE),
            Form(
                ("mlp", "regressor", "lstm"),
                {"input_scale": 64.0, "input_offset": 128.0},
                tensor="Net_input_0",
            ),
        ),
    ),
    Fault(
        *(10, "double normalisation", "input"),
        (*_INIT, "InputRange", "TensorVariance"),
        "small_inputs",
        (
            Form(("cnn",), {"input_scale": 1 / 255}, tensor="input"),
            Form(("mlp", "regressor", "lstm"), {"input_scale": 1 / 255}, tensor="input"),
        ),
    ),
    Fault(
        *(11, "missing or double softmax", "head"),
        ("OutputRange", "InitialLoss", "NegativeLoss"),
        "wrong_head",
        (
            Form(
                ("mlp", "cnn", "lstm"), {"loss": "without_softmax"}, name="missing", tensor="Loss"
            ),
            Form(
                ("mlp", "cnn", "transformer"),
                {"loss": "double_softmax"},
                name="double",
                tensor="Loss",
            ),
        ),
    ),
    Fault(
        *(12, "wrong loss for the task", "head"),
        ("InitialLoss", "OutputRange"),
        "no_accuracy",
        (Form(("mlp", "cnn", "lstm"), {"loss": "squared_ids"}, tensor="Loss"),),
    ),
    Fault(
        *(13, "shuffled labels", "labels"),
        (*_STUCK, "Overfit", "Confusion", "ClassImbalance"),
        "worse_validation",
        (Form(("mlp", "circles", "cnn", "lstm"), injection=inject.ShuffledLabels),),
    ),
    Fault(
        *(14, "class imbalance", "labels"),
        ("ClassImbalance", "LabelBalance"),
        "imbalanced",
        (
            Form(("mlp", "cnn"), {"class_weights": (50, 50, 50, 1)}, tensor="labels"),
            Form(("lstm",), {"class_weights": (50, 50, 1)}, tensor="labels"),
            Form(("circles",), {"class_weights": (50, 1)}, tensor="labels"),
        ),
    ),
    Fault(
        *(15, "two classes swapped", "labels"),
        ("Confusion", "ClassImbalance", "SwappedClasses"),
        "swapped",
        (Form(("mlp", "cnn", "lstm"), injection=inject.SwappedClasses, tensor="predictions"),),
    ),
    Fault(
        *(16, "tiny training set", "generalisation"),
        ("Overfit", "Overtraining", "GeneralizationGap"),
        "overfitted",
        (
            Form(
                ("mlp", "circles", "regressor", "cnn"),
                {"train_samples": 32, "batch": 16, "label_noise": 0.1},
            ),
        ),
    ),
    Fault(
        *(17, "run past the minimum", "generalisation"),
        ("Overtraining", "Overfit", "GeneralizationGap"),
        "past_minimum",
        (
            Form(("mlp",), {"train_samples": 192, "steps": 400, "batch": 32, "label_noise": 0.15}),
            Form(
                ("regressor",),
                {"train_samples": 96, "steps": 400, "batch": 32, "label_noise": 0.5, "width": 64},
                {"lr": 3},
            ),
            Form(
                ("trees",),
                {
                    **{"train_samples": 100, "steps": 300, "label_noise": 0.5},
                    **{"least_gain": 0.05, "depth": 5},
                },
            ),
        ),
    ),
    Fault(
        *(18, "too much weight decay", "regularisation"),
        (
            *("AllZero", "GrowthDivergence", "VanishingGradient", "UpdateSize", "WeightCollapse"),
            *_STUCK,
        ),
        "withered",
        (
            Form(("mlp", "cnn"), {"decay": 1.0}),
            Form(("regressor", "transformer"), {"decay": 1.0}),
        ),
    ),
    Fault(
        *(19, "layer frozen by mistake", "silent update"),
        _EFFECT,
        "layer_unchanged",
        (
            Form(
                ("mlp", "regressor", "cnn", "transformer", "ranks"),
                injection=lambda: inject.SkippedLayer("layers.1."),
                tensor="layers.1.",
            ),
            Form(("lstm",), injection=lambda: inject.SkippedLayer("layers.0."), tensor="layers.0."),
        ),
    ),
    Fault(
        *(20, "optimizer holds stale copies", "silent update"),
        (*_EFFECT, "LossNotDecreasing"),
        "nothing_changed",
        (Form(("mlp", "regressor", "cnn", "lstm", "transformer"), injection=inject.StaleCopy),),
    ),
    Fault(
        *(21, "gradient not reset", "silent update"),
        (
            *_SPIKE,
            *_NAN,
            "UpdateSize",
            "WeightsNotUpdated",
            "GradientNotReset",
            "GrowthDivergence",
        ),
        "gradient_grows",
        (Form(("mlp", "regressor", "cnn", "lstm", "transformer"), injection=inject.NeverReset),),
    ),
    Fault(
        *(22, "NaN from log(0)", "numerics"),
        _NAN,
        "nan_at",
        (
            Form(
                ("mlp", "regressor", "cnn", "transformer"),
                injection=lambda: inject.LogOfZero("layers.1.relu", MIDDLE),
                tensor="layers.1.relu_output_0",
                onset=MIDDLE,
            ),
            Form(
                ("lstm",),
                injection=lambda: inject.LogOfZero("layers.0.tanh", MIDDLE),
                tensor="layers.0.tanh_output_0",
                onset=MIDDLE,
            ),
        ),
    ),
    Fault(
        *(23, "half precision overflow", "numerics"),
        (*_NAN, "OverflowHeadroom", "GrowthDivergence"),
        "overflowed",
        (
            Form(
                ("mlp", "regressor", "cnn"),
                injection=lambda: inject.HalfOverflow("layers.1.relu", "layers.1.rescale", DEATH),
                tensor="layers.1.relu_output_0",
                onset=DEATH,
            ),
        ),
    ),
    Fault(
        *(24, "bfloat16 stagnation", "numerics"),
        (
            "LostUpdates",
            "WeightUpdateRatio",
            "UpdateSize",
            "LossNotDecreasing",
            "UnchangedTensor",
        ),
        "lost_updates",
        (
            Form(("mlp", "cnn"), {"lr": 5e-4}, injection=inject.RoundedWeights),
            Form(("regressor",), {"lr": 5e-5}, injection=inject.RoundedWeights),
        ),
    ),
    Fault(
        *(25, "loss spike that recovers", "spike"),
        _SPIKE,
        "spiked_and_recovered",
        (
            Form(
                ("mlp", "regressor", "transformer"),
                injection=lambda: inject.PoisonedBatch(MIDDLE, 6, harm=True),
                onset=MIDDLE,
            ),
            Form(
                ("cnn",),
                injection=lambda: inject.PoisonedBatch(MIDDLE, 3, harm=True),
                onset=MIDDLE,
            ),
        ),
        is_report_only=True,
    ),
    Fault(
        *(26, "ranks not synchronised", "ranks"),
        ("RankDivergence", "GradientSynchronization"),
        "ranks_part",
        (Form(("ranks",), injection=lambda: inject.SkippedReduction(MIDDLE), onset=MIDDLE),),
    ),
    Fault(
        *(27, "clipping on one rank only", "ranks"),
        ("RankDivergence", "GradientSynchronization"),
        "ranks_part",
        (
            Form(
                ("ranks",),
                injection=lambda: inject.ClippedRank(1, 0.05, MIDDLE),
                rank=1,
                onset=MIDDLE,
            ),
        ),
    ),
    Fault(
        *(28, "same batch on all ranks", "ranks"),
        ("GradientSynchronization",),
        "same_gradients",
        (Form(("ranks",), injection=inject.SameBatch),),
    ),
    Fault(
        *(29, "attention entropy collapse", "attention"),
        ("AttentionEntropyCollapse",),
        "collapsed",
        (
            Form(
                ("transformer",),
                injection=lambda: inject.Scaled(
                    ("layers.1.attention.q", "layers.1.attention.k"), 8, MIDDLE
                ),
                tensor="layers.1.attention",
                onset=MIDDLE,
            ),
        ),
    ),
    Fault(
        *(30, "padding flood", "input"),
        ("NLPSequenceRatio",),
        "padded",
        (Form(("transformer",), {"filler": 0.8}, tensor="embedding0_input_0"),),
    ),
    Fault(
        *(31, "stall", "stall"),
        PAUSE_RULES,
        "paused",
        (
            Form(
                ("mlp", "cnn"),
                injection=lambda: inject.Sleep(MIDDLE, PAUSE_SECS),
                onset=MIDDLE,
            ),
            Form(
                ("trees",),
                injection=lambda: inject.Sleep(DEATH, PAUSE_SECS),
                onset=DEATH,
            ),
        ),
    ),
    Fault(
        *(32, "bit flip in a weight", "corruption"),
        (*_SPIKE, *_NAN, "GrowthDivergence", "RankDivergence"),
        "flipped",
        (
            Form(
                ("mlp", "transformer"),
                injection=lambda: inject.BitFlip("head.weight", 30, MIDDLE),
                tensor="head.weight",
                onset=MIDDLE,
            ),
            Form(
                ("cnn",),
                injection=lambda: inject.BitFlip("layers.0.conv.weight", 30, MIDDLE),
                tensor="layers.0.conv",
                onset=MIDDLE,
            ),
            Form(
                ("ranks",),
                injection=lambda: inject.BitFlip("layers.0.fc.weight", 24, MIDDLE, rank=1),
                tensor="layers.0.fc",
                rank=1,
                onset=MIDDLE,
                name="silent",
                symptom="ranks_part",
            ),
        ),
    ),
    Fault(
        *(33, "resume without optimizer state", "silent update"),
        ("ResumeContinuity",),
        "state_lost",
        (
            Form(
                ("mlp", "regressor", "lstm", "transformer"),
                injection=lambda: inject.LostState(MIDDLE),
                onset=MIDDLE,
            ),
        ),
    ),
    Fault(
        *(34, "dominating feature or deep trees", "trees"),
        ("FeatureImportanceOverweight", "TreeDepth"),
        "dominated",
        (
            Form(("trees",), {"dominating": True}, name="feature", tensor="f0"),
            Form(("trees",), {"depth": 9}, name="depth", tensor="trees/", symptom="deep"),
        ),
    ),
    Fault(
        *(35, "Adam epsilon", "optimizer"),
        ("AdamDenominators", "UpdateSize", "LossNotDecreasing", "LossAtChance"),
        "large_epsilon",
        (
            Form(("regressor", "lstm", "transformer"), {"eps": 0.1}, name="large"),
            Form(
                ("transformer",),
                {"eps": 1e-16},
                name="small",
                tensor="attention.k.bias",
                symptom="small_epsilon",
            ),
        ),
    ),
)
