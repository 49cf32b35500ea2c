"""Monitored sessions of TensorFlow, recorded with the real framework."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import session_training as training
import smdebug.tensorflow as smd
import tensorflow as tf
from conftest import Messages
from session_training import tf1
from smdebug.exceptions import SMDebugTypeError
from smdebug.tensorflow.session.plan import FetchPlans

WEIGHT = "foobar/weight1:0"
GRADIENT = "gradients/product_grad/tuple/control_dependency_1:0"
REDUCTIONS = ["min", "max", "mean", "std", "variance", "sum", "prod"]
NORMS = ["l1", "l2"]

pytestmark = pytest.mark.usefixtures("strict")


def hook_of(out_dir: Path, **options: Any) -> smd.SessionHook:
    options.setdefault("save_config", smd.SaveConfig(save_interval=2))
    return smd.SessionHook(str(out_dir), **options)


def test_scripts_find_the_hook_under_all_of_its_names() -> None:
    from smdebug.tensorflow.estimator import EstimatorHook
    from smdebug.tensorflow.session import EstimatorHook as second_name
    from smdebug.tensorflow.session import SessionHook

    assert SessionHook is smd.SessionHook
    assert EstimatorHook is second_name is smd.EstimatorHook


class Asked(tf1.train.SessionRunHook):
    """Notes what a session was asked to fetch beside what the program wants."""

    def __init__(self, hook: smd.SessionHook) -> None:
        self._hook = hook
        self.counts: list[int] = []

    def begin(self) -> None:
        self._hook.begin()

    def before_run(self, run_context: Any) -> Any:
        asked = self._hook.before_run(run_context)
        self.counts.append(0 if asked is None else len(asked.fetches))
        return asked

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._hook.after_run(run_context, run_values)

    def end(self, session: Any) -> None:
        self._hook.end(session)


def test_a_variable_its_gradient_and_the_loss_are_saved_at_every_second_run(out_dir: Path) -> None:
    hook = hook_of(out_dir, include_collections=["weights", "biases", "gradients"])
    net = training.one_weight(hook)
    training.train(net, [hook])
    hook.close()
    trial = smd.create_trial(str(out_dir))
    assert trial.steps() == [0, 2, 4, 6, 8]
    assert trial.tensor_names(collection="weights") == [WEIGHT]
    assert trial.tensor_names(collection="losses") == ["loss:0"]
    assert trial.tensor_names(collection="gradients") == [GRADIENT]
    assert trial.tensor_names(collection="biases") == []
    assert trial.tensor(WEIGHT).value(4).shape == (4, 3)
    assert trial.tensor("loss:0").value(4).shape == ()


@pytest.mark.parametrize("resource", [True, False])
def test_values_are_those_of_the_run(out_dir: Path, resource: bool) -> None:
    hook = hook_of(out_dir, include_collections=["weights", "gradients"])
    net = training.one_weight(hook, resource=resource)
    seen: list[Any] = []

    def run(session: Any, feed: Any) -> None:
        loss, product, _ = session.run([net.loss, "product:0", net.train], feed)
        gradient = 2 / product.size * feed[net.inputs].T @ (product - feed[net.labels])
        seen.append((loss, gradient))

    training.train(net, [hook], 6, run)
    hook.close()
    trial = smd.create_trial(str(out_dir))
    for step in (0, 2, 4):
        loss, gradient = seen[step]
        assert trial.tensor("loss:0").value(step) == loss
        np.testing.assert_allclose(trial.tensor(GRADIENT).value(step), gradient, rtol=1e-4)
        assert trial.tensor(WEIGHT).value(step).any()


def test_reductions_of_weights_and_gradients_but_not_of_losses(out_dir: Path) -> None:
    config = smd.ReductionConfig(
        reductions=REDUCTIONS, abs_reductions=REDUCTIONS, norms=NORMS, abs_norms=NORMS
    )
    hook = hook_of(out_dir, include_collections=["weights", "gradients"], reduction_config=config)
    training.train(training.one_weight(hook), [hook], 2)
    hook.close()
    trial = smd.create_trial(str(out_dir))
    assert trial.tensor("loss:0").value(0) > 0
    assert trial.tensor("loss:0").reduction_values(0) == {}
    for name in (WEIGHT, GRADIENT):
        values = trial.tensor(name).reduction_values(0)
        assert len(values) == 18
        assert trial.tensor(name).reduction_value(0, "l2") > 0
        with pytest.raises(smd_error("TensorUnavailableForStep")):
            trial.tensor(name).value(0)


def smd_error(name: str) -> type[Exception]:
    from smdebug import exceptions

    return getattr(exceptions, name)


def test_a_pattern_chooses_one_tensor(out_dir: Path) -> None:
    hook = hook_of(out_dir, include_regex=["loss:0"], include_collections=["default"])
    for name in ("losses", "metrics", "sm_metrics"):
        hook.get_collection(name).save_config = smd.SaveConfig(end_step=0)
    asked = Asked(hook)
    training.train(training.one_weight(hook), [asked])
    hook.close()
    trial = smd.create_trial(str(out_dir))
    assert asked.counts == [1, 0] * 5
    assert trial.tensor_names() == ["loss:0"]
    assert [trial.tensor("loss:0").value(step).nbytes for step in trial.steps()] == [4] * 5


def test_save_all_leaves_out_what_needs_an_unfed_placeholder(out_dir: Path) -> None:
    hook = hook_of(out_dir, save_all=True)
    training.train(training.one_weight(hook), [hook], 3)
    hook.close()
    names = smd.create_trial(str(out_dir)).tensor_names()
    assert len(names) > 50
    assert {WEIGHT, GRADIENT, "loss:0", "product:0", "foobar/weight1/Adam:0"} <= set(names)
    assert not {"unfed:0", "loss_and_unfed:0"} & set(names)
    assert not [name for name in names if name.startswith("foobar/weight1/Read/")]


def test_a_fed_placeholder_is_saved_with_what_depends_on_it(out_dir: Path) -> None:
    hook = hook_of(out_dir, include_regex=["unfed", "inputs"])
    net = training.one_weight(hook)

    def run(session: Any, feed: Any) -> None:
        session.run(net.train, {**feed, "unfed:0": 3.0})

    training.train(net, [hook], 1, run)
    hook.close()
    trial = smd.create_trial(str(out_dir))
    assert trial.tensor("unfed:0").value(0) == 3.0
    total = trial.tensor("loss_and_unfed:0").value(0)
    assert total == pytest.approx(trial.tensor("loss:0").value(0) + 3.0)
    assert trial.tensor("inputs:0").value(0).shape == (5, 4)


@pytest.mark.parametrize("graph", [training.one_weight, training.layered])
@pytest.mark.parametrize("save_all", [False, True])
def test_training_is_the_same_to_the_last_bit(out_dir: Path, graph: Any, save_all: bool) -> None:
    plain = training.train(graph(), [], 12)
    hook = hook_of(
        out_dir,
        save_config=smd.SaveConfig(save_interval=3),
        save_all=save_all,
        include_collections=["weights", "biases", "gradients", "optimizer_variables"],
    )
    recorded = training.train(graph(hook), [hook], 12)
    hook.close()
    assert len(smd.create_trial(str(out_dir)).steps()) == 4
    assert plain.keys() == recorded.keys()
    for name, value in plain.items():
        assert value.tobytes() == recorded[name].tobytes(), name


def test_the_graph_gets_no_operation(out_dir: Path) -> None:
    hook = hook_of(out_dir, save_all=True, export_tensorboard=True)
    recorded, plain = training.layered(hook), training.layered()
    training.train(recorded, [hook], 2)
    training.train(plain, [], 2)
    hook.close()
    names = [[op.name for op in net.graph.get_operations()] for net in (recorded, plain)]
    assert names[0] == names[1]


def test_side_effects_do_not_happen_for_the_hook(out_dir: Path) -> None:
    hook = hook_of(out_dir, save_config=smd.SaveConfig(save_interval=1), save_all=True)
    with tf.Graph().as_default() as graph:
        data = tf1.data.make_one_shot_iterator(tf.data.Dataset.range(100)).get_next()
        tf.multiply(data, 2, name="doubled")
        noise = tf1.random_uniform((), seed=5, name="noise")
        tf.add(noise, 1, name="more_noise")
        counter = tf1.get_variable("counter", (), tf.int32, tf1.zeros_initializer())
        tf1.assign_add(counter, 1, name="count")
        checked = tf.debugging.check_numerics(tf.constant(0.0) / 0.0, "never run", name="checked")
        tf.identity(checked, name="after_check")
        still = tf.constant(1.0, name="still")
        with tf1.train.MonitoredSession(hooks=[hook]) as session:
            for _ in range(5):
                session.run(still)
            assert session.run(counter) == 0
            assert session.run(data) == 0, "the hook has taken no batch"
            assert session.run("doubled:0") == 2
            random = session.run(noise)
    with graph.as_default(), tf1.Session() as session:
        assert session.run(noise) == random, "the hook has drawn no random number"
    hook.close()
    trial = smd.create_trial(str(out_dir))
    assert "still:0" in trial.tensor_names()
    assert trial.tensor("doubled:0").steps() == [6, 7], "runs that take a batch anyway"
    assert trial.tensor("doubled:0").value(7) == 2
    assert not {"checked:0", "after_check:0", "count:0"} & set(trial.tensor_names())


def test_a_tensor_that_cannot_be_computed_costs_only_those_that_nobody_computes(
    out_dir: Path, messages: Messages
) -> None:
    hook = hook_of(out_dir, save_all=True)
    with tf.Graph().as_default():
        size = tf.constant([3], name="size")
        tf.reshape(tf.constant([1.0, 2.0]), tf1.placeholder_with_default(size, (1,)), name="bad")
        inner = tf.constant([1.0, 2.0], name="start") * tf1.placeholder_with_default(2.0, ())
        result = tf.reduce_sum(tf.identity(inner, name="inner"), name="result")
        with tf1.train.MonitoredSession(hooks=[hook]) as session:
            assert [float(session.run(result)) for _ in range(3)] == [6, 6, 6]
    hook.close()
    assert len(messages.containing("one of them cannot be")) == 1
    trial = smd.create_trial(str(out_dir))
    assert trial.tensor("inner:0").value(2).tolist() == [2, 4]
    assert "bad:0" not in trial.tensor_names()


def test_inner_tensors_are_those_of_the_same_batch_weights_and_random_numbers(
    out_dir: Path,
) -> None:
    hook = hook_of(out_dir, include_regex=["^inner", "^batch", "^mask", "^outer"])
    for resource in (True, False):
        with tf.Graph().as_default():
            tf1.set_random_seed(3)
            data = tf.data.Dataset.range(1, 100).map(lambda i: tf.cast(i, tf.float32))
            batch = tf.identity(tf1.data.make_one_shot_iterator(data).get_next(), name="batch")
            mask = tf.identity(tf1.random_uniform(()), name="mask")
            weight = tf1.get_variable("w", (), use_resource=resource)
            inner = tf.multiply(weight * batch, mask, name="inner")
            outer = tf.square(inner, name="outer")
            optimizer = tf1.train.GradientDescentOptimizer(0.01)
            update = optimizer.minimize(outer)
            with tf1.train.MonitoredSession(hooks=[hook]) as session:
                seen = [session.run([outer, update])[0] for _ in range(4)]
        trial = smd.create_trial(str(out_dir))
        steps = trial.steps()[-2:]
        for step, value in zip(steps, seen[::2], strict=True):
            saved = {n: trial.tensor(f"{n}:0").value(step) for n in ("inner", "outer", "batch")}
            assert saved["outer"] == value
            assert saved["inner"] ** 2 == pytest.approx(value, rel=1e-6)
            assert saved["batch"] == step % 4 + 1, "every batch was taken once"
    hook.close()


def test_runs_that_save_nothing_fetch_nothing_and_plans_are_made_once(
    out_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    make = FetchPlans._make
    monkeypatch.setattr(
        FetchPlans,
        "_make",
        lambda *args: made.append(args) or make(*args),  # type: ignore[func-returns-value]
    )
    hook = hook_of(out_dir, save_all=True, save_config=smd.SaveConfig(save_interval=4))
    asked = Asked(hook)
    training.train(training.one_weight(hook), [asked], 40)
    hook.close()
    counts = asked.counts
    assert all(counts[::4])
    assert not any(count for i, count in enumerate(counts) if i % 4)
    # Names that join collections in the first saved step may make a second one.
    assert len(made) <= 2


def test_modes_have_their_own_steps_and_evaluation_has_no_gradients(out_dir: Path) -> None:
    hook = hook_of(out_dir, include_collections=["weights", "gradients"])
    net = training.one_weight(hook)
    hook.set_mode(smd.modes.TRAIN)
    training.train(net, [hook], 3)
    for mode in (smd.modes.EVAL, smd.modes.PREDICT):
        hook.set_mode(mode)
        training.train(net, [hook], 3, lambda session, feed: session.run(net.loss, feed))
    hook.close()
    trial = smd.create_trial(str(out_dir))
    for mode in (smd.modes.TRAIN, smd.modes.EVAL, smd.modes.PREDICT):
        assert trial.steps(mode=mode) == [0, 2]
        assert trial.tensor(WEIGHT).steps(mode=mode) == [0, 2]
    assert trial.steps() == [0, 2, 3, 5, 6, 8]
    assert trial.tensor(GRADIENT).steps(mode=smd.modes.TRAIN) == [0, 2]
    assert trial.tensor(GRADIENT).steps(mode=smd.modes.EVAL) == []


def test_the_run_after_the_last_batch_is_no_step(out_dir: Path) -> None:
    hook = hook_of(out_dir, save_config=smd.SaveConfig(save_interval=1))
    for mode in (smd.modes.TRAIN, smd.modes.EVAL, smd.modes.TRAIN):
        hook.set_mode(mode)
        with tf.Graph().as_default():
            data = tf.data.Dataset.range(3).map(lambda i: tf.cast(i, tf.float32))
            loss = tf.identity(tf1.data.make_one_shot_iterator(data).get_next(), name="loss")
            tf1.losses.add_loss(loss)
            with tf1.train.MonitoredSession(hooks=[hook]) as session:
                while not session.should_stop():
                    session.run(loss)
    hook.close()
    trial = smd.create_trial(str(out_dir))
    assert trial.steps(mode=smd.modes.TRAIN) == [0, 1, 2, 3, 4, 5]
    assert trial.steps(mode=smd.modes.EVAL) == [0, 1, 2]
    assert [float(trial.tensor("loss:0").value(i)) for i in trial.steps()] == [0, 1, 2] * 3


def test_the_step_counts_on_after_a_run(out_dir: Path) -> None:
    hook = hook_of(out_dir)
    net = training.one_weight(hook)
    hook.set_mode(smd.modes.TRAIN)
    seen: list[Any] = [int(hook.step)]

    def run(session: Any, feed: Any) -> None:
        session.run(net.train, feed)
        seen.append((int(hook.step), hook.mode_steps[smd.modes.TRAIN]))

    training.train(net, [hook], 3, run)
    assert hook.init_step == 0
    assert seen == [0, (1, 1), (2, 2), (3, 3)]


def test_what_is_saved_between_runs_belongs_to_the_next(out_dir: Path) -> None:
    hook = hook_of(out_dir)
    net = training.one_weight(hook)
    value = np.zeros(2, np.float32)

    def run(session: Any, feed: Any) -> None:
        hook.save_scalar("number", value[0])
        hook.save_tensor("mine", value)
        value[:] += 1
        session.run(net.train, feed)

    training.train(net, [hook], 4, run)
    hook.save_tensor("last", np.ones(3))
    hook.close()
    trial = smd.create_trial(str(out_dir))
    assert [trial.tensor("scalar/number").value(i)[0] for i in range(4)] == [0, 1, 2, 3]
    assert [trial.tensor("mine").value(i).tolist() for i in (0, 2)] == [[0, 0], [2, 2]]
    assert trial.tensor("mine").steps() == [0, 2]
    assert trial.tensor("last").steps() == [4]


def test_losses_of_tf_losses_are_found_and_none_is_saved_twice(out_dir: Path) -> None:
    hook = hook_of(out_dir)
    net = training.layered(hook)
    with net.graph.as_default():
        tf1.losses.add_loss(net.loss)
        tf1.losses.add_loss(tf.identity(net.loss, name="again"))
    asked = Asked(hook)
    training.train(net, [asked], 1)
    hook.close()
    trial = smd.create_trial(str(out_dir))
    assert trial.tensor_names() == ["again:0", "mean_squared_error/value:0"]
    assert asked.counts == [2]


def test_optimizer_variables_biases_and_weights_are_told_apart(out_dir: Path) -> None:
    kinds = ["weights", "biases", "gradients", "optimizer_variables"]
    hook = hook_of(out_dir, include_collections=kinds)
    training.train(training.layered(hook), [hook], 1)
    hook.close()
    trial = smd.create_trial(str(out_dir))
    biases = ["conv/bias:0", "dense0/bias:0", "dense1/bias:0"]
    weights = [
        *("bn/beta:0", "bn/gamma:0", "conv/kernel:0"),
        *("dense0/kernel:0", "dense1/kernel:0"),
    ]
    momenta = [name.replace(":0", "/Momentum:0") for name in sorted([*biases, *weights])]
    assert sorted(trial.tensor_names(collection="biases")) == biases
    assert sorted(trial.tensor_names(collection="weights")) == weights
    assert sorted(trial.tensor_names(collection="optimizer_variables")) == sorted(momenta)
    assert len(trial.tensor_names(collection="gradients")) == 8


def test_users_can_add_tensors_variables_operations_and_lists(out_dir: Path) -> None:
    hook = hook_of(out_dir, include_collections=["mine"])
    net = training.one_weight(hook)
    operation = net.graph.get_operation_by_name("product")
    [step] = net.graph.get_collection(tf1.GraphKeys.GLOBAL_STEP)
    hook.add_to_collection("mine", [operation, step])
    hook.add_to_collection("mine", net.graph.get_tensor_by_name("sub:0"))
    hook.get_collection("mine").add(net.graph.get_tensor_by_name("Square:0"))
    with pytest.raises(SMDebugTypeError, match="was expected, not int"):
        hook.add_to_collection("mine", 3)
    training.train(net, [hook], 1)
    hook.close()
    names = smd.create_trial(str(out_dir)).tensor_names(collection="mine")
    assert sorted(names) == ["Square:0", "global_step:0", "product:0", "sub:0"]


def test_sparse_gradients_are_saved_dense(out_dir: Path) -> None:
    hook = hook_of(out_dir, include_collections=["gradients"])
    with tf.Graph().as_default():
        table = tf1.get_variable("table", (6, 2))
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, [1, 4, 1]))
        optimizer = hook.wrap_optimizer(tf1.train.GradientDescentOptimizer(0.1))
        update = optimizer.minimize(loss)
        with tf1.train.MonitoredSession(hooks=[hook]) as session:
            session.run(update)
    hook.close()
    trial = smd.create_trial(str(out_dir))
    [name] = trial.tensor_names(collection="gradients")
    expected = np.zeros((6, 2), np.float32)
    expected[1], expected[4] = 2, 1
    np.testing.assert_array_equal(trial.tensor(name).value(0), expected)


def test_large_sparse_gradients_are_saved_as_rows(
    out_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smdebug.tensorflow.session.plan.SPARSE_DENSE_LIMIT", 8)
    hook = hook_of(out_dir, include_collections=["gradients"], include_regex=["Reshape"])
    with tf.Graph().as_default():
        table = tf1.get_variable("table", (6, 2))
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, [1, 4, 1]))
        update = hook.wrap_optimizer(tf1.train.GradientDescentOptimizer(0.1)).minimize(loss)
        with tf1.train.MonitoredSession(hooks=[hook]) as session:
            session.run(update)
    hook.close()
    trial = smd.create_trial(str(out_dir))
    [indices] = trial.tensor_names(regex="/indices$")
    assert trial.tensor(indices).value(0).tolist() == [1, 4, 1]


def test_half_precision_and_odd_types_are_saved(out_dir: Path) -> None:
    hook = hook_of(out_dir, include_regex=["^t_[^/]*$"])
    values = {
        "t_bfloat16": tf.bfloat16,
        "t_half": tf.float16,
        "t_bool": tf.bool,
        "t_int": tf.int8,
        "t_complex": tf.complex64,
    }
    with tf.Graph().as_default():
        fetched = [tf.cast([0, 1], kind, name=name) for name, kind in values.items()]
        tf.identity(["text"], name="t_string")
        with tf1.train.MonitoredSession(hooks=[hook]) as session:
            session.run(fetched)
    hook.close()
    trial = smd.create_trial(str(out_dir))
    assert sorted(trial.tensor_names()) == sorted(f"{name}:0" for name in values)
    for name in values:
        assert trial.tensor(f"{name}:0").value(0).tolist() == [0, 1]


def test_control_flow_of_the_first_version_is_no_problem(out_dir: Path) -> None:
    hook = hook_of(out_dir, save_all=True)
    tf1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default():
            flag = tf1.placeholder(tf.bool, (), name="flag")
            chosen = tf1.cond(flag, lambda: tf.constant(1.0), lambda: tf.constant(2.0) * 3)
            looped = tf1.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)])
            result = tf.add(chosen, tf.cast(looped, tf.float32), name="result")
            with tf1.train.MonitoredSession(hooks=[hook]) as session:
                assert session.run(result, {flag: True}) == 4
                assert session.run(result, {flag: False}) == 9
                assert session.run(result, {flag: False}) == 9
    finally:
        tf1.enable_control_flow_v2()
    hook.close()
    trial = smd.create_trial(str(out_dir))
    assert [trial.tensor("result:0").value(i) for i in (0, 2)] == [4, 9]


def test_sessions_stay_right_with_fetches_of_all_kinds(out_dir: Path) -> None:
    hook = hook_of(out_dir, save_config=smd.SaveConfig(save_interval=1), save_all=True)
    net = training.one_weight(hook)
    with net.graph.as_default():
        sparse = tf.sparse.from_dense(tf.constant([0.0, 2.0]))
        fed = tf1.sparse_placeholder(tf.float32, (2,))
        total = tf1.sparse_reduce_sum(fed)
        variable = tf1.global_variables()[0]
    kinds: list[Any] = [
        "loss:0",
        {"b": net.loss, "a": [variable]},
        (sparse, net.train),
        net.train,
        [],
    ]

    def run(session: Any, feed: Any) -> None:
        for kind in kinds:
            session.run(kind, feed)
        given = tf1.SparseTensorValue([[1]], [4.0], [2])
        assert session.run(total, {fed: given}) == 4.0

    training.train(net, [hook], 1, run)
    hook.close()
    trial = smd.create_trial(str(out_dir))
    assert trial.tensor("loss:0").steps() == [0, 1, 2, 3, 4]
    assert trial.tensor(WEIGHT).steps() == [0, 1, 2, 3, 4, 5]


def test_an_optimizer_of_keras_is_refused(out_dir: Path) -> None:
    hook = hook_of(out_dir)
    for wrong in (tf.keras.optimizers.SGD(0.1), "sgd"):
        with pytest.raises(SMDebugTypeError, match=r"optimizers of tf\.compat\.v1\.train only"):
            hook.wrap_optimizer(wrong)


def test_a_wrapped_optimizer_is_the_same_object_and_others_stay_as_they_are(out_dir: Path) -> None:
    hook = hook_of(out_dir)
    optimizer, other = tf1.train.AdamOptimizer(), tf1.train.AdamOptimizer()
    assert hook.wrap_optimizer(optimizer) is optimizer
    assert hook.wrap_optimizer(optimizer) is optimizer
    assert isinstance(optimizer, tf1.train.AdamOptimizer)
    assert type(optimizer).__name__ == "AdamOptimizer"
    assert type(optimizer).__mro__[1] is type(other) is tf1.train.AdamOptimizer


def test_a_tensor_of_another_graph_is_told_and_training_goes_on(
    out_dir: Path, messages: Messages
) -> None:
    hook = hook_of(out_dir, include_collections=["mine"])
    net = training.one_weight(hook)
    with tf.Graph().as_default():
        hook.add_to_collection("mine", tf.constant(1.0, name="stranger"))
    training.train(net, [hook], 4)
    hook.close()
    [told] = messages.containing("stranger:0")
    assert "from another graph than the one that runs" in told
    assert smd.create_trial(str(out_dir)).tensor_names() == ["loss:0"]


def test_two_graphs_in_turns_are_told_once_and_both_go_on(
    out_dir: Path, messages: Messages
) -> None:
    hook = hook_of(out_dir, save_config=smd.SaveConfig(save_interval=1))
    first, second = training.one_weight(hook), training.one_weight(hook)
    sessions = []
    for net in (first, second):
        with net.graph.as_default():
            sessions.append(tf1.train.MonitoredSession(hooks=[hook]))
    for feeds in zip(training.batches(first, 4), training.batches(second, 4), strict=True):
        for net, session, feed in zip((first, second), sessions, feeds, strict=True):
            session.run(net.train, feed)
    hook.close()
    assert len(messages.containing("two graphs in turns")) == 1
    assert smd.create_trial(str(out_dir)).tensor("loss:0").steps() == list(range(8))


def test_one_graph_after_another_is_fine_and_none_is_kept_alive(
    out_dir: Path, messages: Messages
) -> None:
    import gc
    import weakref

    hook = hook_of(out_dir, save_config=smd.SaveConfig(save_interval=1))
    graphs = []
    for _ in range(3):
        net = training.one_weight(hook)
        training.train(net, [hook], 2)
        graphs.append(weakref.ref(net.graph))
    del net
    gc.collect()
    assert [graph() for graph in graphs] == [None, None, None]
    assert not messages.containing("two graphs")
    hook.close()
    assert smd.create_trial(str(out_dir)).steps() == [0, 1, 2, 3, 4, 5]


def test_a_tensor_of_a_graph_cannot_be_saved_by_hand(out_dir: Path) -> None:
    hook = hook_of(out_dir)
    net = training.one_weight(hook)
    with pytest.raises(SMDebugTypeError, match="has a value only while a session runs"):
        hook.save_tensor("loss", net.loss)


def test_a_failure_of_ours_does_not_stop_the_training(
    out_dir: Path, monkeypatch: pytest.MonkeyPatch, messages: Messages
) -> None:
    monkeypatch.delenv("SMDEBUG_STRICT")
    monkeypatch.setattr(FetchPlans, "at", lambda *args: 1 / 0)
    hook = hook_of(out_dir)
    trained = training.train(training.one_weight(hook), [hook], 4)
    hook.close()
    assert len(messages.containing("Beginning a run failed; training goes on.")) == 1
    plain = training.train(training.one_weight(), [], 4)
    assert all(trained[name].tobytes() == plain[name].tobytes() for name in plain)


def test_a_closed_hook_does_nothing(out_dir: Path) -> None:
    hook = hook_of(out_dir)
    net = training.one_weight(hook)
    asked = Asked(hook)

    def run(session: Any, feed: Any) -> None:
        session.run(net.train, feed)
        hook.close()

    training.train(net, [asked], 3, run)
    assert asked.counts == [1, 0, 0]


def test_a_json_file_configures_a_session_hook(out_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    path.write_text(
        f'{{"LocalPath": "{out_dir}", "HookParameters": {{"save_interval": "3"}},'
        ' "CollectionConfigurations": [{"CollectionName": "weights"}]}'
    )
    hook = smd.SessionHook.create_from_json_file(str(path))
    training.train(training.one_weight(hook), [hook], 4)
    hook.close()
    trial = smd.create_trial(str(out_dir))
    assert trial.tensor(WEIGHT).steps() == [0, 3]


def test_a_nan_makes_the_next_run_a_saved_one(out_dir: Path) -> None:
    hook = hook_of(
        out_dir,
        include_collections=["weights"],
        save_config=smd.SaveConfig(save_interval=100, when_nan=["loss:0"]),
    )
    net = training.one_weight(hook)
    count = iter(range(100))

    def run(session: Any, feed: Any) -> None:
        if next(count) == 2:
            feed[net.labels][:] = np.nan
        session.run(net.loss, feed)

    training.train(net, [hook], 5, run)
    hook.close()
    assert smd.create_trial(str(out_dir)).tensor(WEIGHT).steps() == [0, 3]


def test_tensorboard_gets_numbers_the_graph_and_summaries(out_dir: Path) -> None:
    hook = hook_of(
        out_dir,
        include_collections=["weights", "tensorflow_summaries"],
        export_tensorboard=True,
    )
    net = training.one_weight(hook)
    with net.graph.as_default():
        tf1.summary.scalar("user", net.loss)
    training.train(net, [hook], 3)
    hook.close()
    tags: set[str] = set()
    nodes = 0
    for path in (out_dir / "tensorboard").rglob("*tfevents*"):
        for event in tf1.train.summary_iterator(str(path)):
            tags |= {value.tag for value in event.summary.value}
            if event.graph_def:
                nodes = len(tf1.GraphDef.FromString(event.graph_def).node)
    assert "user" in tags
    assert [tag for tag in tags if "loss" in tag]
    assert [tag for tag in tags if "weight1" in tag]
    assert nodes > 50
