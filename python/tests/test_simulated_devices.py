"""Arrays on several CUDA devices, which tests/simulated_cuda stands for.

Each test runs a training in a process of its own, where the simulated driver is found by the name
of the real one. Its streams do everything later than they are told, each at its own pace.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from smdebug import Hook, ReductionConfig, SaveConfig, _core, create_trial
from smdebug.exceptions import TensorUnavailableForStep

ROOT = Path(__file__).resolve().parents[2]
# Where the wheel is tested, it is the one of the checkout.
SIMULATED = Path(os.environ.get("SIMULATED_CUDA_DIR", ROOT / "build/dev/simulated_cuda"))

DEVICES = (0, 1)
STEPS = 8
SHAPE = (33, 47)
NAMES = ["min", "max", "mean", "std", "variance", "sum"]
NORMS = ["l1", "l2"]
STATISTICS = {"reductions": NAMES, "norms": NORMS, "abs_reductions": ["mean"]}

Done = subprocess.CompletedProcess[str]


def run(training: Callable[..., None], out: Path, *words: str, **variables: str) -> Done:
    """A function of this file, in a process with two simulated devices."""
    assert (SIMULATED / "libcuda.so.1").exists(), "build the target simulated_cuda"
    kept = {name: value for name, value in os.environ.items() if name != "SMDEBUG_LOG_LEVEL"}
    libraries = [str(SIMULATED), *filter(None, [kept.get("LD_LIBRARY_PATH")])]
    own = {
        "LD_LIBRARY_PATH": os.pathsep.join(libraries),
        "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parent)]),
        "SIMULATED_CUDA_DELAY_US": "300",
        "SMDEBUG_DEVICE_RING_BYTES": "65536",
        "SMDEBUG_KERNEL_CACHE_DIR": str(out.parent / "kernels"),
        "SMDEBUG_STRICT": "1",
    }
    arguments = [str(out), *words]
    code = f"import {__name__} as tests; tests.{training.__name__}(*{arguments!r})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**kept, **own, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def values_at(step: int, device: int, dtype: str = "float32") -> np.ndarray:
    random = np.random.default_rng([step, device])
    return random.normal(40 + 20 * device, 15, SHAPE).clip(0, 200).astype(dtype)


def hook_for(out: str, reductions: dict = STATISTICS, **options) -> Hook:
    return Hook(
        out,
        include_regex=[".*"],
        save_config=SaveConfig(save_interval=1),
        reduction_config=ReductionConfig(**reductions) if reductions else None,
        **options,
    )


def train_in_place(hook: Hook, devices: list, dtype: str = "float32") -> None:
    """Overwrites the arrays right after they were offered."""
    from simulated_arrays import Array

    arrays = [Array(values_at(0, device, dtype), place) for device, place in enumerate(devices)]
    for step in range(STEPS):
        hook.begin_step()
        for device, array in enumerate(arrays):
            array.assign(values_at(step, device, dtype))
            hook.save(f"on_{device}", array)
            array.assign(np.full(SHAPE, 77, dtype))
    hook.close()
    assert Array.read_by_host == []


def check_statistics(tensor, step: int, expected: np.ndarray) -> None:
    exact = expected.astype(np.float64)
    found = {name: float(tensor.reduction_value(step, name)) for name in NAMES + NORMS}
    wanted = {name: getattr(np, {"variance": "var"}.get(name, name))(exact) for name in NAMES}
    wanted |= {"l1": np.abs(exact).sum(), "l2": np.linalg.norm(exact)}
    assert found == pytest.approx(wanted, rel=1e-6)
    assert float(tensor.reduction_value(step, "mean", abs=True)) == pytest.approx(
        np.abs(exact).mean()
    )


# ---- values


def statistics(out: str, dtype: str) -> None:
    from simulated_arrays import framework

    with framework() as devices:
        train_in_place(hook_for(out), devices, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "uint8", "bool"])
def test_each_device_has_its_own_statistics(tmp_path, dtype):
    out = tmp_path / "run"
    run(statistics, out, dtype)
    trial = create_trial(str(out))
    for device in DEVICES:
        for step in range(STEPS):
            check_statistics(trial.tensor(f"on_{device}"), step, values_at(step, device, dtype))


def elements(out: str) -> None:
    from simulated_arrays import framework

    with framework() as devices:
        train_in_place(hook_for(out, {**STATISTICS, "save_raw_tensor": True}), devices)


@pytest.mark.parametrize("seed", ["1", "2", "3"])
@pytest.mark.parametrize(
    "ring_bytes", ["65536", "8192", "0"], ids=["ring", "small ring", "straight"]
)
def test_elements_and_statistics_are_those_of_the_moment(tmp_path, seed, ring_bytes):
    out = tmp_path / "run"
    run(elements, out, SIMULATED_CUDA_SEED=seed, SMDEBUG_DEVICE_RING_BYTES=ring_bytes)
    trial = create_trial(str(out))
    for device in DEVICES:
        tensor = trial.tensor(f"on_{device}")
        for step in range(STEPS):
            np.testing.assert_array_equal(tensor.value(step), values_at(step, device))
            check_statistics(tensor, step, values_at(step, device))


def arrays_that_die(out: str) -> None:
    from simulated_arrays import Array, framework

    with framework() as devices, hook_for(out, {}) as hook:
        for step in range(STEPS):
            hook.begin_step()
            for device, place in enumerate(devices):
                hook.save(f"on_{device}", Array(values_at(step, device), place))
        hook.close()
        assert Array.read_by_host == []


def test_arrays_may_die_right_after_they_were_saved(tmp_path):
    out = tmp_path / "run"
    run(arrays_that_die, out)
    trial = create_trial(str(out))
    for device in DEVICES:
        for step in range(STEPS):
            found = trial.tensor(f"on_{device}").value(step)
            np.testing.assert_array_equal(found, values_at(step, device))


def large_values_at(step: int, device: int) -> np.ndarray:
    return np.resize(values_at(step, device), (1024, 1024))


def slow_device(out: str) -> None:
    from simulated_arrays import Array, cuda, framework

    most = 6 * large_values_at(0, 0).nbytes
    reductions = {**STATISTICS, "save_raw_tensor": True}
    with framework() as devices:
        hook = hook_for(out, reductions, max_queue_bytes=most, overflow="drop")
        cuda.simulated_cuda_set_delay(30_000, 1)  # the writer waits for the first values
        for step in range(STEPS):
            hook.begin_step()
            for device, place in enumerate(devices):
                hook.save(f"on_{device}", Array(large_values_at(step, device), place))
        hook.close()
        assert Array.read_by_host == []
        print(json.dumps(hook.bill()))


def test_elements_that_find_no_room_are_left_out_and_statistics_are_not(tmp_path):
    out = tmp_path / "run"
    done = run(slow_device, out)
    bill = json.loads(done.stdout.splitlines()[-1])
    trial = create_trial(str(out))
    present = 0
    for device in DEVICES:
        tensor = trial.tensor(f"on_{device}")
        assert tensor.steps() == list(range(STEPS))
        for step in range(STEPS):
            check_statistics(tensor, step, large_values_at(step, device))
            try:
                found = tensor.value(step)
            except TensorUnavailableForStep:
                continue
            np.testing.assert_array_equal(found, large_values_at(step, device))
            present += 1
    assert bill["left_out"] == 2 * STEPS - present > 0
    assert present >= 2
    assert bill["left_out_bytes"] == bill["left_out"] * large_values_at(0, 0).nbytes


# ---- what only the host can find


def medians(out: str) -> None:
    from simulated_arrays import framework

    with framework() as devices:
        train_in_place(hook_for(out, {"reductions": ["median", "max"]}), devices)


def test_medians_of_each_device_are_found_in_a_copy(tmp_path):
    out = tmp_path / "run"
    run(medians, out)
    trial = create_trial(str(out))
    for device in DEVICES:
        tensor = trial.tensor(f"on_{device}")
        for step in range(STEPS):
            values = values_at(step, device)
            assert float(tensor.reduction_value(step, "median")) == np.median(values)
            assert float(tensor.reduction_value(step, "max")) == values.max()


def board_hook(out: str) -> Hook:
    hook = hook_for(out, {"reductions": ["max"]}, tensorboard_dir=out + "_board")
    hook.get_collection("default").save_histogram = True
    return hook


def histograms(out: str) -> None:
    from simulated_arrays import framework

    with framework() as devices:
        train_in_place(board_hook(out), devices)


def shown(folder: Path) -> list[bytes]:
    """What TensorBoard is told, without the times."""
    out = []
    for path in sorted(folder.rglob("*tfevents*")):
        data = path.read_bytes()
        while data:
            size = int.from_bytes(data[:8], "little")
            record, data = data[12 : 12 + size], data[16 + size :]
            out.append(record[9:])
    return out


def test_histograms_are_those_of_the_host(tmp_path):
    run(histograms, tmp_path / "device")
    with board_hook(str(tmp_path / "host")) as hook:
        for step in range(STEPS):
            hook.begin_step()
            for device in DEVICES:
                hook.save(f"on_{device}", values_at(step, device))
    of_devices = shown(tmp_path / "device_board")
    assert of_devices == shown(tmp_path / "host_board")
    assert len(of_devices) > STEPS * len(DEVICES)


# ---- lists


def direct_to(hook: Hook, streams: dict[int, int], given_up: list[int]) -> _core.DeviceTensors:
    """What hooks of frameworks hand lists of tensors to."""
    parts = {
        "stream_of": streams.__getitem__,
        "usable": dict.fromkeys(DEVICES, True),
        "gave_up": lambda device, reason: given_up.append(device),
        "queue": lambda: None,
        "full": lambda: None,
        "held_bytes": 1 << 20,
    }
    return _core.DeviceTensors(hook._core, None, parts)


def lists(out: str, way: str) -> None:
    from simulated_arrays import Array, framework

    reductions = {**STATISTICS, "save_raw_tensor": way == "copy"}
    with framework() as devices, hook_for(out, reductions) as hook:
        streams = {device: _core.device_stream(device) for device in DEVICES}
        given_up: list[int] = []
        direct = direct_to(hook, streams, given_up)
        for step in range(STEPS):
            hook.begin_step()
            arrays = [Array(values_at(step, i) + i, devices[i % 2]) for i in range(6)]
            lent = [array.__dlpack__(stream=streams[i % 2]) for i, array in enumerate(arrays)]
            tensors = [_core.DeviceArray(capsule) for capsule in lent]
            names = [f"{i}" for i in range(6)]
            if way == "survey":
                assert direct.survey(names, tensors) == []
            else:
                assert direct.copy(names, tensors, _core.Kind.automatic) == []
        direct.give_back_lent(0)
        assert given_up == []


@pytest.mark.parametrize("way", ["survey", "copy"])
def test_a_list_may_have_arrays_of_several_devices(tmp_path, way):
    out = tmp_path / "run"
    run(lists, out, way)
    trial = create_trial(str(out))
    for i in range(6):
        for step in range(STEPS):
            expected = values_at(step, i) + i
            check_statistics(trial.tensor(f"{i}"), step, expected)
            if way == "copy":
                np.testing.assert_array_equal(trial.tensor(f"{i}").value(step), expected)


def vetoes(out: str, way: str) -> None:
    from simulated_arrays import Array, framework

    reductions = {**STATISTICS, "save_raw_tensor": way == "copy"}
    with framework() as devices, hook_for(out, reductions) as hook:
        streams = {device: _core.device_stream(device) for device in DEVICES}
        direct = direct_to(hook, streams, [])
        alive: list[Array] = []  # a program gives memory away in the order of its own stream

        def lent(values: np.ndarray, device: int) -> _core.DeviceArray:
            alive.append(Array(values, devices[device]))
            return _core.DeviceArray(alive[-1].__dlpack__(stream=streams[device]))

        for step in range(STEPS):
            hook.begin_step()
            # On another device than the tensor; as a fused optimizer has it.
            assert direct.set_veto(lent(np.float32([step % 2]), 1))
            tensor = lent(values_at(step, 0), 0)
            take = direct.survey if way == "survey" else direct.copy
            more = [] if way == "survey" else [_core.Kind.automatic]
            assert take(["perhaps"], [tensor], *more) == []
            direct.set_veto(None)
            assert take(["always"], [tensor], *more) == []
        direct.give_back_lent(0)


@pytest.mark.parametrize("way", ["survey", "copy"])
def test_what_a_number_of_a_device_forbids_is_left_out_when_it_comes(tmp_path, way):
    out = tmp_path / "run"
    run(vetoes, out, way)
    trial = create_trial(str(out))
    assert trial.tensor("perhaps").steps() == list(range(0, STEPS, 2))
    assert trial.tensor("always").steps() == list(range(STEPS))
    for name in ("perhaps", "always"):
        for step in trial.tensor(name).steps():
            check_statistics(trial.tensor(name), step, values_at(step, 0))
            if way == "copy":
                np.testing.assert_array_equal(trial.tensor(name).value(step), values_at(step, 0))


def tensors(out: str, streams: str) -> None:
    from simulated_arrays import Tensor, framework

    with framework(streams == "own") as devices, devices[0].current(), hook_for(out) as hook:
        given_up: list[int] = []
        direct = direct_to(hook, {place.ordinal: place.stream for place in devices}, given_up)
        for step in range(STEPS):
            hook.begin_step()
            made = [Tensor(values_at(step, i) + i, devices[i % 2]) for i in range(8)]
            names = [f"{i}" for i in range(8)]
            assert direct.survey(names[:4], made[:4]) == []
            for name, tensor in zip(names[4:], made[4:], strict=True):
                assert direct.hold(name, tensor)
            assert direct.release() == ([], [])
            direct.forget()
        assert given_up == []


@pytest.mark.parametrize("streams", ["null", "own"])
def test_tensors_of_several_devices_are_read_without_an_exchange_api(tmp_path, streams):
    out = tmp_path / "run"
    run(tensors, out, streams)
    trial = create_trial(str(out))
    for i in range(8):
        for step in range(STEPS):
            check_statistics(trial.tensor(f"{i}"), step, values_at(step, i) + i)


def list_of_which_one_fails(out: str) -> None:
    from simulated_arrays import Array, framework

    with framework() as devices, hook_for(out) as hook:
        streams = {device: _core.device_stream(device) for device in DEVICES}
        given_up: list[int] = []
        direct = direct_to(hook, streams, given_up)
        hook.begin_step()
        arrays = [Array(values_at(i, i % 2), devices[i % 2]) for i in range(6)]
        lent = [array.__dlpack__(stream=streams[i % 2]) for i, array in enumerate(arrays)]
        left = direct.survey([f"{i}" for i in range(6)], [_core.DeviceArray(one) for one in lent])
        assert sorted(left) == [1, 3, 5]
        assert given_up == [1]


def test_a_device_that_fails_leaves_its_own_arrays_of_a_list(tmp_path):
    out = tmp_path / "run"
    run(list_of_which_one_fails, out, SIMULATED_CUDA_LOCKED_BYTES=str(5 << 20))
    trial = create_trial(str(out))
    assert trial.tensor_names() == ["0", "2", "4"]
    for i in (0, 2, 4):
        check_statistics(trial.tensor(f"{i}"), 0, values_at(i, 0))


# ---- failures


def without_locked_memory(out: str) -> None:
    from simulated_arrays import Array, framework

    with framework() as devices, hook_for(out) as hook:
        arrays = [Array(values_at(0, device), place) for device, place in enumerate(devices)]
        for step in range(STEPS):
            hook.begin_step()
            for device, array in enumerate(arrays):
                array.assign(values_at(step, device))
                hook.save(f"on_{device}", array)
        assert Array.read_by_host == [1] * STEPS


def test_the_host_reads_what_a_device_cannot_and_the_log_says_so_once(tmp_path):
    out = tmp_path / "run"
    done = run(without_locked_memory, out, SIMULATED_CUDA_LOCKED_BYTES=str(5 << 20))
    warnings = [line for line in done.stdout.splitlines() if "INFO" not in line]
    assert len(warnings) == 1
    assert warnings[0].endswith(
        "Arrays on cuda:1 are copied to the host to be read: "
        "Could not lock memory for results: CUDA_ERROR_OUT_OF_MEMORY."
    )
    trial = create_trial(str(out))
    for device in DEVICES:
        for step in range(STEPS):
            check_statistics(trial.tensor(f"on_{device}"), step, values_at(step, device))


def device_that_fails(out: str) -> None:
    from simulated_arrays import Array, DeviceError, framework

    with framework() as devices:
        hook = hook_for(out)
        arrays = {place: Array(np.zeros(SHAPE, np.float32), place) for place in devices}
        for step in range(STEPS):
            hook.begin_step()
            for place, array in list(arrays.items()):
                try:
                    array.assign(values_at(step, place.ordinal))
                    place.finish()
                    hook.save(f"on_{place.ordinal}", array)
                    place.finish()
                except DeviceError:  # the program goes on without it
                    del arrays[place]
            hook.end_step()
        hook.close()
        assert [place.ordinal for place in arrays] == [0]


# At first the program's array is made; each step makes its values, a copy and a survey.
@pytest.mark.parametrize("own", [False, True], ids=["in the program", "in ours"])
def test_a_device_that_fails_costs_steps_in_flight_and_not_the_training(tmp_path, own):
    out = tmp_path / "run"
    count = 1 + 3 * 3 + (2 if own else 0)
    done = run(device_that_fails, out, SMDEBUG_STRICT="0", SIMULATED_CUDA_FAIL=f"1:{count}")
    errors = [line for line in done.stdout.splitlines() if "ERROR" in line]
    trial = create_trial(str(out))
    # The device says nothing any more of what the writer has not asked for so far.
    lost = sorted(set(range(STEPS)) - set(trial.steps()))
    assert set(lost) <= set(range(4))
    assert not own or 3 in lost
    # At the end, and when a step ends after it was seen.
    said = "Could not wait for the device: CUDA_ERROR_LAUNCH_FAILED."
    assert all(said in line for line in errors)
    assert 1 <= len(errors) <= 2 if lost else not errors
    for step in trial.steps():
        check_statistics(trial.tensor("on_0"), step, values_at(step, 0))
    for step in sorted(set(range(3)) - set(lost)):
        check_statistics(trial.tensor("on_1"), step, values_at(step, 1))
