"""Symptoms: how the bench makes sure that an injected fault is real.

Each function looks at the run of a faulty case, and at the healthy run of the same trainer and seed,
and says whether the fault shows. `FAULTS` names them. Rules know nothing of this.
"""

from __future__ import annotations

import numpy as np
from smdebug import modes

from faults.catalogue import PAUSE_SECS
from faults.evidence import Evidence


def diverged(run: Evidence, twin: Evidence) -> bool:
    return not np.isfinite(run.loss).all() or run.late_loss() > 1.5 * twin.late_loss() + 0.2


def stuck(run: Evidence, twin: Evidence) -> bool:
    start = np.median(run.loss[:20])
    return run.late_loss() > 0.8 * start and run.late_loss() > 1.5 * twin.late_loss()


def rose(run: Evidence, twin: Evidence) -> bool:
    onset = run.case.onset
    after = run.loss[onset + 30 :]
    return not np.isfinite(after).all() or np.median(after) > 2 * np.median(run.loss[:onset])


def units_alike(run: Evidence, twin: Evidence) -> bool:
    """All units of a hidden layer have the same weights to the end."""
    name = "layers.1.conv.weight" if "layers.1.conv.weight" in run.names else "layers.1.fc.weight"
    weight = run.value(name, run.raw_steps(name)[-1])
    spread = np.abs(weight - weight[:1]).max()
    return bool(spread <= 1e-4 * (np.abs(weight).max() + 1e-12)) or float(np.abs(weight).max()) == 0


def uneven_scale(run: Evidence, twin: Evidence) -> bool:
    def ratio(of: Evidence) -> float:
        first, second = (of.series(f"layers.{i}.relu_input_0", "std")[0] for i in (0, 1))
        return float(second / first)

    changed = ratio(run) / ratio(twin)
    return changed > 10 or changed < 0.1


def vanishing(run: Evidence, twin: Evidence) -> bool:
    """The first layer's gradients are next to nothing beside the last one's."""
    first = run.series("gradient/layers.0.fc.weight", "mean", absolute=True)
    last = run.series("gradient/head.weight", "mean", absolute=True)
    return bool(np.median(first / last) < 1e-3)


def saturated(run: Evidence, twin: Evidence) -> bool:
    names = run.names_like("tanh_input_0$")
    shares = [np.mean(np.abs(run.value(n, 0)) > 9.4999) for n in names]
    return max(shares, default=0) > 0.6


def dead_units(run: Evidence, twin: Evidence) -> bool:
    """At the onset most units of the layer stop to fire for any sample."""

    def share(step: int) -> float:
        y = run.value("layers.1.relu_output_0", step)
        return float(np.mean((y <= 0).all(axis=0)))

    return share(run.case.onset) > 0.6 and share(0) < 0.4


def _input(run: Evidence) -> str:
    return run.names_like("^(Net|hybridsequential0|embedding0)_input_0$")[0]


def large_inputs(run: Evidence, twin: Evidence) -> bool:
    return bool(run.series(_input(run), "mean", absolute=True)[0] > 50)


def small_inputs(run: Evidence, twin: Evidence) -> bool:
    return bool(run.series(_input(run), "std")[0] < 0.02)


def wrong_head(run: Evidence, twin: Evidence) -> bool:
    if run.case.settings.loss == "without_softmax":
        return bool(np.nanmin(run.loss) < 0)
    seen = run.value(run.names_like("Loss_input_0$")[0], 0)
    return bool(np.allclose(seen.sum(axis=-1), 1, atol=1e-4) and (seen >= 0).all())


def no_accuracy(run: Evidence, twin: Evidence) -> bool:
    labels, predictions = run.validation_classes()
    good_labels, good_predictions = twin.validation_classes()
    return bool(np.mean(labels == predictions) < np.mean(good_labels == good_predictions) - 0.2)


def worse_validation(run: Evidence, twin: Evidence) -> bool:
    return bool(run.validation[1][-1] > 1.5 * twin.validation[1][-1] + 0.2)


def imbalanced(run: Evidence, twin: Evidence) -> bool:
    tensor = run.trial.tensor("labels")
    found = [tensor.value(s, mode=modes.TRAIN) for s in tensor.steps(mode=modes.TRAIN)]
    counts = np.bincount(np.concatenate(found))
    return bool(counts.max() > 10 * max(1, counts.min()))


def swapped(run: Evidence, twin: Evidence) -> bool:
    labels, predictions = run.validation_classes()
    return bool(np.mean(predictions[labels == 0] == 1) > 0.5)


def overfitted(run: Evidence, twin: Evidence) -> bool:
    return bool(run.validation[1][-1] > 1.5 * run.late_loss())


def past_minimum(run: Evidence, twin: Evidence) -> bool:
    points, means = run.validation
    return bool(means[-1] > 1.03 * means.min() and means.argmin() < 0.75 * len(points))


def withered(run: Evidence, twin: Evidence) -> bool:
    shrunk = [run.series(n, "l2")[-1] / twin.series(n, "l2")[-1] for n in run.weights]
    return bool(np.median(shrunk) < 0.3 and run.late_loss() > 1.5 * twin.late_loss())


def _moves(run: Evidence, name: str) -> bool:
    steps = run.raw_steps(name)
    return not np.array_equal(run.value(name, steps[0]), run.value(name, steps[-1]))


def layer_unchanged(run: Evidence, twin: Evidence) -> bool:
    assert run.case.form is not None
    inside = [n for n in run.weights if n.startswith(run.case.form.tensor)]
    outside = [n for n in run.weights if not n.startswith(run.case.form.tensor)]
    pushed = all(run.series(f"gradient/{n}", "l2")[-1] > 0 for n in inside)
    return (
        bool(inside)
        and pushed
        and not any(_moves(run, n) for n in inside)
        and all(_moves(run, n) for n in outside)
    )


def nothing_changed(run: Evidence, twin: Evidence) -> bool:
    pushed = all(run.series(f"gradient/{n}", "l2")[0] > 0 for n in run.weights)
    return pushed and not any(_moves(run, n) for n in run.weights)


def gradient_grows(run: Evidence, twin: Evidence) -> bool:
    ours, theirs = run.scalar("gradient_norm"), twin.scalar("gradient_norm")
    return not np.isfinite(ours).all() or bool(np.median(ours[20:]) > 3 * np.median(theirs[20:]))


def _first_nonfinite(run: Evidence, name: str) -> int:
    bad = ~np.isfinite(run.series(name, "max")) | ~np.isfinite(run.series(name, "min"))
    return int(bad.argmax()) if bad.any() else -1


def nan_at(run: Evidence, twin: Evidence) -> bool:
    """At the onset the named tensor is the first that is not finite; what goes into it still is."""
    assert run.case.form is not None
    name = run.case.form.tensor
    before = name.replace("_output_0", "_input_0")
    onset = run.case.onset
    return (
        _first_nonfinite(run, name) == onset
        and bool(np.isfinite(run.series(before, "max")[onset]))
        and not np.isfinite(run.loss[onset])
        and bool(np.isfinite(run.loss[:onset]).all())
    )


def overflowed(run: Evidence, twin: Evidence) -> bool:
    assert run.case.form is not None
    at = _first_nonfinite(run, run.case.form.tensor)
    climb = run.series(run.case.form.tensor, "max")
    return at > run.case.onset + 20 and climb[at - 1] > 6500 and not np.isfinite(run.loss[at])


def lost_updates(run: Evidence, twin: Evidence) -> bool:
    """Most weights stay as they are although they have gradients."""
    kept = [np.mean(run.value(n, 1) == run.value(n, 2)) for n in run.weights]
    pushed = [np.mean(run.value(f"gradient/{n}", 1) != 0) for n in run.weights]
    return bool(np.mean(kept) > 0.5 and np.mean(pushed) > 0.5)


def spiked_and_recovered(run: Evidence, twin: Evidence) -> bool:
    onset = run.case.onset
    before = np.median(run.loss_around(onset, 30, 0))
    return bool(run.loss[onset] > 2.5 * before) and run.late_loss() < 1.3 * before + 0.05


def _ranks_differ(run: Evidence, prefix: str) -> np.ndarray:
    """Whether the ranks disagree, for each step, about any tensor of a kind."""
    names = [f"{prefix}{n}" for n in run.weights]
    tables = [
        run.trial.matrix("sum", tensors=names, mode=modes.TRAIN, worker=w).values
        for w in run.trial.workers()
    ]
    return np.array([(table != tables[0]).any(axis=0) for table in tables[1:]]).any(axis=0)


def ranks_part(run: Evidence, twin: Evidence) -> bool:
    """Weights agree up to the step that the fault spoils, and differ ever after."""
    differ = _ranks_differ(run, "")
    onset = run.case.onset
    return not differ[:onset].any() and bool(differ[onset + 1 :].all())


def same_gradients(run: Evidence, twin: Evidence) -> bool:
    return not _ranks_differ(run, "gradient/").any() and bool(
        _ranks_differ(twin, "gradient/").all()
    )


def collapsed(run: Evidence, twin: Evidence) -> bool:
    name = "layers.1.attention.softmax_output_0"

    def entropy(step: int) -> float:
        a = run.value(name, step).astype(np.float64)
        return float(-(a * np.log(np.maximum(a, 1e-12))).sum(axis=-1).mean())

    steps = run.raw_steps(name)
    before = max(s for s in steps if s < run.case.onset)
    return entropy(run.case.onset) < 0.5 * entropy(before)


def padded(run: Evidence, twin: Evidence) -> bool:
    name = _input(run)
    return bool(np.mean(run.value(name, 0) == 0) > 0.6)


def paused(run: Evidence, twin: Evidence) -> bool:
    return run.truth.longest_pause_secs >= PAUSE_SECS


def flipped(run: Evidence, twin: Evidence) -> bool:
    onset = run.case.onset
    struck = run.loss[onset]
    return not np.isfinite(struck) or bool(struck > 3 * np.median(run.loss[onset - 20 : onset]))


def state_lost(run: Evidence, twin: Evidence) -> bool:
    counts = run.scalar("optimizer_step")
    onset = run.case.onset
    return counts[onset - 1] > 1 and counts[onset] == 0 and not np.array_equal(run.loss, twin.loss)


def dominated(run: Evidence, twin: Evidence) -> bool:
    names = run.names_like("^feature_importance/weight/")
    shares = sorted(float(run.trial.tensor(n).series()[1][-1]) for n in names)
    return len(shares) > 3 and sum(shares[-3:]) > 0.8 * sum(shares)


def deep(run: Evidence, twin: Evidence) -> bool:
    nodes = run.trial.tensor("trees/Node")
    return bool(nodes.value(0).max() >= 32)


def large_epsilon(run: Evidence, twin: Evidence) -> bool:
    """Most denominators are next to nothing beside epsilon, and learning is slower."""
    states = run.names_like("^optimizer/exp_avg_sq/.*weight")
    small = [
        np.mean(np.sqrt(run.value(n, run.raw_steps(n)[-1])) < 10 * run.case.settings.eps)
        for n in states
    ]
    slower = np.mean(run.loss[:100]) > 1.1 * np.mean(twin.loss[:100])
    return bool(np.mean(small) > 0.5 and slower)


def small_epsilon(run: Evidence, twin: Evidence) -> bool:
    """A bias whose gradient is rounding noise wanders as fast as the others learn."""
    name = "layers.0.attention.k.bias"
    return bool(run.series(name, "l2")[-1] > 10 * twin.series(name, "l2")[-1])


def trains(run: Evidence) -> bool:
    """Whether a healthy run is healthy: the loss falls, or was low and stays so."""
    loss = run.loss
    if not np.isfinite(loss).all():
        return False
    start, end = np.median(loss[:10]), np.median(loss[-20:])
    variant = run.case.variant
    if variant is not None and variant.is_converged:
        return bool(end < 1.3 * start + 0.02)
    return bool(end < 0.75 * start)


SYMPTOMS = {
    name: function
    for name, function in globals().items()
    if callable(function) and getattr(function, "__module__", "") == __name__ and name != "trains"
}


def shows(run: Evidence, twin: Evidence) -> bool:
    """Whether the fault of a faulty run is there."""
    case = run.case
    assert case.fault is not None and case.form is not None
    with np.errstate(all="ignore"):
        return bool(SYMPTOMS[case.form.symptom or case.fault.symptom](run, twin))
