"""Alarms held against the truth."""

from __future__ import annotations

from dataclasses import replace

from faults.case import Case, Truth, faulty_cases, plain_case
from faults.judge.alarm import Alarm
from faults.judge.verdict import Verdict, judge

# Global steps are twice the steps of TRAIN here.
TRUTH = Truth([2 * i for i in range(240)], longest_pause_secs=0, seconds=1, bytes_written=1)


def faulty(number: int, trainer: str, seed: int = 1) -> Case:
    cases = faulty_cases(seed)
    return next(c for c in cases if c.fault and c.fault.number == number and c.trainer == trainer)


def verdict(case: Case, *alarms: Alarm, names_causes: bool = True) -> Verdict:
    return judge(case, TRUTH, list(alarms), names_causes)


def alarm(rule: str, train_step: int, *tensors: str, workers: tuple[str, ...] = ()) -> Alarm:
    return Alarm(rule, "warning", 2 * train_step, tensors, workers)


def test_alarm_about_a_healthy_run_is_false() -> None:
    found = verdict(plain_case("mlp", 1), alarm("DeadRelu", 5), Alarm("LossSpike", "info", 3))
    assert found.false_alarms == ["DeadRelu"]
    assert not found.is_detected


def test_right_finding_at_the_right_place_and_step() -> None:
    # Fault 8 kills the units of layer 1 at step 60; whole tensors are saved every 10 steps.
    found = verdict(faulty(8, "mlp"), alarm("dead_relu", 70, "layers.1.relu_output_0"))
    assert (found.detected_at, found.named_at, found.latency) == (70, 70, 10)
    assert found.is_diagnosed and found.is_tensor_right and found.is_step_right
    assert found.is_rank_right is None
    assert found.steps_saved == 1 - 71 / 240


def test_wrong_layer_and_late_step_are_told() -> None:
    found = verdict(
        faulty(8, "mlp"), alarm("DeadRelu", 71, "layers.0.relu_output_0", "layers.1.relu_output_0")
    )
    assert found.is_diagnosed
    assert found.is_tensor_right is False
    assert found.is_step_right is False


def test_inputs_that_saturate_a_layer_are_right_to_blame() -> None:
    case = faulty(7, "mlp")
    for tensor, is_right in (("layers.0.tanh_input_0", True), ("Net_input_0", True), ("w", False)):
        assert verdict(case, alarm("InputRange", 2, tensor)).is_tensor_right is is_right
    assert verdict(faulty(8, "mlp"), alarm("DeadRelu", 60, "Net_input_0")).is_tensor_right is False


def test_pause_that_the_machine_made_is_no_false_alarm() -> None:
    alarms = [alarm("TrainingPause", 100), alarm("DeadRelu", 5)]
    stopped = replace(TRUTH, longest_pause_secs=3.0)
    case = plain_case("mlp", 1)
    assert judge(case, stopped, alarms, True).false_alarms == ["DeadRelu"]
    assert judge(case, TRUTH, alarms, True).false_alarms == ["TrainingPause", "DeadRelu"]


def test_step_is_judged_where_the_fault_has_one() -> None:
    assert verdict(faulty(13, "mlp"), alarm("LossNotDecreasing", 0)).is_step_right is None
    # Half precision overflows long after the growth began.
    overflow = alarm("ExplodingTensor", 150, "layers.1.relu_output_0")
    assert verdict(faulty(23, "mlp"), overflow).is_step_right is True


def test_alarm_before_the_onset_is_false_and_detects_nothing() -> None:
    found = verdict(faulty(8, "mlp"), alarm("DeadRelu", 59))
    assert found.false_alarms == ["DeadRelu"]
    assert not found.is_detected
    assert found.named_at is None


def test_wrong_rule_detects_without_naming() -> None:
    found = verdict(faulty(8, "mlp"), alarm("Overfit", 100))
    assert found.detected_at == 100
    assert found.named_at is None
    assert not found.is_diagnosed


def test_diagnosis_is_the_first_finding_and_latency_that_of_the_right_one() -> None:
    found = verdict(faulty(8, "mlp"), alarm("Overfit", 80), alarm("DeadRelu", 60))
    assert not found.is_diagnosed
    assert (found.detected_at, found.latency) == (60, 0)
    assert found.rules == ["Overfit", "DeadRelu"]
    assert found.right_rules == ["DeadRelu"]


def test_reports_do_not_detect_except_where_a_report_is_due() -> None:
    spike = Alarm("LossSpike", "info", 200)
    assert not verdict(faulty(3, "mlp"), spike).is_detected
    assert verdict(faulty(25, "mlp"), spike).named_at == 100


def test_rank_is_right_if_the_guilty_one_is_singled_out() -> None:
    case = faulty(27, "ranks")
    assert case.settings.ranks == 3

    def rank_right(*workers: str) -> bool | None:
        return verdict(case, alarm("RankDivergence", 101, "w", workers=workers)).is_rank_right

    assert rank_right("worker_1") is True
    assert rank_right("worker_0") is False
    assert rank_right("worker_0", "worker_1", "worker_2") is False
    # Of two nobody can tell who is wrong.
    two = replace(case, seed=3)
    assert two.settings.ranks == 2
    both = alarm("RankDivergence", 101, "w", workers=("worker_0", "worker_1"))
    assert verdict(two, both).is_rank_right is True


def test_baseline_is_right_without_naming() -> None:
    found = verdict(faulty(8, "mlp"), alarm("NaN stop", 90), names_causes=False)
    assert found.named_at == 90
    assert not found.is_diagnosed
    assert found.is_tensor_right is None
