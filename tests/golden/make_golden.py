"""Writes the golden run directories with the released package, and expected.json beside them.

Run it inside the released package's environment:
tools/venv.sh original -- python tests/golden/make_golden.py
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tools")]

import numpy as np  # noqa: E402
from expectation import (  # noqa: E402
    Expectation,
    Shape,
    Tensor,
    collection,
    histogram_meaning,
    layout,
    quantized,
    reduction_config,
    save_config_mode,
    tensor,
)
from original_hook import FrameworkFreeHook, quiet  # noqa: E402
from record_encoding import (  # noqa: E402
    Stamp,
    histogram_summary_record,
    scalar_summary_record,
)
from smdebug import ReductionConfig, SaveConfig, SaveConfigMode, modes  # noqa: E402
from smdebug.core.collection_manager import CollectionManager  # noqa: E402
from smdebug.core.utils import serialize_tf_device  # noqa: E402
from smdebug.core.writer import FileWriter  # noqa: E402

WALL_TIME = 1600000000.5
REDUCTIONS = ["min", "max", "mean", "std", "variance", "sum", "prod"]
NORMS = ["l1", "l2"]
ALL_REDUCTIONS = (
    "min,max,mean,std,variance,sum,prod,l1_norm,l2_norm,"
    "abs_min,abs_max,abs_mean,abs_std,abs_variance,abs_sum,abs_prod,abs_l1_norm,abs_l2_norm"
)
FULL_PATTERNS = ["^conv[0-9]+", "(?<!bias)/weight$", "größe"]


def write_step(
    run: Expectation,
    stamp: Stamp,
    worker: str,
    tensors: list[Tensor],
    shapes: list[Shape] | None = None,
) -> None:
    """Writes one step with the released FileWriter and records what it must contain."""
    writer = FileWriter(trial_dir=str(run.root), worker=worker, step=stamp.step)
    mode = modes[stamp.mode]
    for t in tensors:
        wall_time = stamp.wall_time if t.wall_time is None else t.wall_time
        writer.write_tensor(
            tdata=t.given, tname=t.name, mode=mode, mode_step=stamp.mode_step, timestamp=wall_time
        )
    for s in shapes or []:
        writer.write_shape(
            s.name, s.shape, mode=mode, mode_step=stamp.mode_step, original_name=s.original_name
        )
    writer.close()
    run.step(stamp, worker, tensors, shapes)


def write_collections(
    run: Expectation, workers: list[str], manager: CollectionManager, wanted: list[dict]
) -> None:
    """Exports the manager's collections once per worker."""
    manager.set_num_workers(len(workers))
    for worker in workers:
        manager.export(str(run.root), f"{worker}_collections.json")
        run.collections_file(worker, len(workers), wanted)


def end(run: Expectation) -> None:
    """Marks the run as finished, the way a reader sees it."""
    (run.root / "training_job_end.ts").touch()
    run.ended = True


def write_weights_collection(run: Expectation, workers: list[str]) -> None:
    """Writes one collection that has a pattern and no configuration."""
    manager = CollectionManager()
    manager.create_collection("weights")
    manager.get("weights").include("weight")
    write_collections(run, workers, manager, [collection("weights", "weight")])


def at(step: int, mode: str = "GLOBAL", mode_step: int | None = None) -> Stamp:
    """A stamp at the fixed wall time."""
    return Stamp(WALL_TIME, step, mode, step if mode_step is None else mode_step)


def dtype_tensors() -> list[Tensor]:
    """One tensor for each type the writer knows, with its extreme values."""
    tensors = []
    for name in ("float16", "float32", "float64"):
        info = np.finfo(name)
        values = [0.0, -0.0, 1.5, info.max, info.tiny, np.nan, np.inf, -np.inf]
        tensors.append(tensor(f"dtype/{name}", np.array(values, dtype=name).reshape(2, 4)))
    for bits in (8, 16, 32, 64):
        for name in (f"int{bits}", f"uint{bits}"):
            limits = np.iinfo(name)
            whole = np.array([limits.min, 0, 1, limits.max], dtype=name)
            tensors.append(tensor(f"dtype/{name}", whole.reshape(2, 2)))
    tensors.append(tensor("dtype/bool", np.array([[True, False], [False, True]])))
    for name in ("complex64", "complex128"):
        pairs = np.array([1 + 2j, -0.5j, complex(np.nan, np.inf)], dtype=name)
        tensors.append(tensor(f"dtype/{name}", pairs))
    return tensors


def layout_tensors() -> list[Tensor]:
    """Ranks 0 to 4, and arrays that do not lie in C order."""
    grid = np.arange(24, dtype=np.float32)
    shapes = [(24,), (4, 6), (2, 3, 4), (2, 1, 3, 4)]
    tensors = [tensor("rank/0", np.array(2.5, dtype=np.float32))]
    tensors += [tensor(f"rank/{len(shape)}", grid.reshape(shape)) for shape in shapes]
    tensors.append(tensor("layout/fortran", np.asfortranarray(grid.reshape(4, 6))))
    tensors.append(tensor("layout/strided", grid.reshape(4, 6)[::2, ::-3]))
    tensors.append(tensor("layout/large", np.arange(300, dtype=np.int16).reshape(150, 2)))
    return tensors


def scalar_tensors() -> list[Tensor]:
    """Plain Python and NumPy scalars, a list, and a caller's own time stamp."""
    return [
        tensor("scalar/float", 0.1),
        tensor("scalar/int", -3),
        tensor("scalar/bool", True),
        tensor("scalar/str", "text"),
        tensor("scalar/numpy", np.float32(0.25)),
        tensor("scalar/list", [1, 2, 3]),
        tensor("scalar/late", 1.0, wall_time=1700000000.125),
    ]


def string_tensors() -> list[Tensor]:
    """One-dimensional strings, including empty ones and characters of every length."""
    return [
        tensor("string/unicode", np.array(["foo", "barz"])),
        tensor("string/object", np.array(["", "é€😀", "a/b:c"], dtype=object)),
        tensor("名前/weight:0", np.array([1.0], dtype=np.float64)),
    ]


def quantized_tensors() -> list[Tensor]:
    """Structured arrays of the quantised types."""
    table = [
        ("qint8", "i1", 11), ("quint8", "u1", 12), ("qint16", "i2", 15),
        ("quint16", "u2", 17), ("qint32", "i4", 3),
    ]  # fmt: skip
    return [quantized(f"dtype/{label}", label, base, code) for label, base, code in table]


def make_types(run: Expectation) -> None:
    """Every element type, rank and scalar form."""
    groups = [dtype_tensors(), layout_tensors(), scalar_tensors(), string_tensors()]
    groups += [quantized_tensors(), [tensor("empty", np.zeros((0, 3), dtype=np.float32))]]
    for step, tensors in enumerate(groups):
        write_step(run, at(step), "worker_0", tensors)
    write_weights_collection(run, ["worker_0"])
    end(run)


def make_modes(run: Expectation) -> None:
    """All modes with their own step counts, across index prefixes."""
    plan = [
        (0, "TRAIN", 0), (1, "TRAIN", 1), (2, "EVAL", 0), (3, "PREDICT", 0), (4, "TRAIN", 2),
        (5, "GLOBAL", 5), (999, "TRAIN", 500), (1000, "TRAIN", 501), (1001, "EVAL", 130),
        (2500, "TRAIN", 1200), (123456789, "TRAIN", 99999999),
    ]  # fmt: skip
    for step, mode, mode_step in plan:
        weight = np.array([step, mode_step], dtype=np.float64)
        tensors = [tensor("layer/weight", weight), tensor(f"only/{mode}", mode_step)]
        write_step(run, at(step, mode, mode_step), "worker_0", tensors)
    write_weights_collection(run, ["worker_0"])
    end(run)


def two_workers(run: Expectation, workers: list[str], last_alone: bool) -> None:
    """Three steps of two workers; on request a fourth step of the first alone."""
    for step in range(4 if last_alone else 3):
        for rank, worker in enumerate(workers):
            if step == 3 and rank == 1:
                continue
            weight = np.full((2, 2), 10 * step + rank, dtype=np.float32)
            own = tensor(f"only/rank_{rank}", step)
            write_step(run, at(step, "TRAIN", step), worker, [tensor("layer/weight", weight), own])
    write_weights_collection(run, workers)


def make_workers(run: Expectation) -> None:
    """Two workers, finished, one step incomplete."""
    two_workers(run, ["worker_0", "worker_1"], last_alone=True)
    end(run)


def make_running(run: Expectation) -> None:
    """Two workers, still running, one step incomplete, a temporary file beside the index."""
    two_workers(run, ["worker_0", "worker_1"], last_alone=True)
    (run.root / "index/000000000/000000000003_worker_1.json.tmp").write_text('{"meta": {"mo')


def make_devices(run: Expectation) -> None:
    """Workers named after devices, so that names start with an underscore."""
    names = [f"/job:worker/replica:0/task:0/device:GPU:{i}" for i in range(2)]
    two_workers(run, [serialize_tf_device(name) for name in names], last_alone=False)
    end(run)


def make_shapes(run: Expectation) -> None:
    """Shapes without tensors, and beside tensors."""
    only = [Shape("layer/weight", (2, 3), "layer/weight"), Shape("scalar", (), "original:0")]
    write_step(run, at(0, "TRAIN", 0), "worker_0", [], only)
    both = [Shape("layer/weight", (2, 3), "layer/weight"), Shape("empty", (0, 4), "empty")]
    value = tensor("layer/bias", np.zeros(3, dtype=np.float32))
    write_step(run, at(1, "EVAL", 0), "worker_0", [value], both)
    write_weights_collection(run, ["worker_0"])
    end(run)


def make_collections(run: Expectation) -> None:
    """Collections with null, partial and full configurations."""
    manager = CollectionManager()
    manager.get("all").include(".*")
    manager.create_collection("full")
    full = manager.get("full")
    full.include(FULL_PATTERNS)
    full.add_tensor_name("b/weight")
    full.add_tensor_name("a/weight")
    full.reduction_config = ReductionConfig(
        reductions=REDUCTIONS, norms=NORMS, abs_reductions=REDUCTIONS, abs_norms=NORMS,
        save_raw_tensor=True, save_shape=True,
    )  # fmt: skip
    full.save_config = SaveConfig(
        {
            modes.TRAIN: SaveConfigMode(save_interval=10, start_step=5, end_step=200),
            modes.EVAL: SaveConfigMode(save_interval=1, save_steps=[3, 7]),
        }
    )
    full.save_histogram = False
    manager.create_collection("uniform")
    manager.get("uniform").include("u")
    manager.get("uniform").save_config = SaveConfig(save_interval=3)
    manager.get("uniform").reduction_config = ReductionConfig()
    write_step(run, at(0), "worker_0", [tensor("a/weight", np.ones(2, dtype=np.float32))])
    write_collections(run, ["worker_0"], manager, configured_collections())
    end(run)


def configured_collections() -> list[dict]:
    """What the collections file of `make_collections` must say."""
    plan = {
        "TRAIN": save_config_mode(10, start_step=5, end_step=200),
        "EVAL": save_config_mode(1, save_steps=[3, 7]),
        "PREDICT": None,
        "GLOBAL": None,
    }
    full = collection(
        "full",
        *FULL_PATTERNS,
        tensor_names=["a/weight", "b/weight"],
        reduction_config=reduction_config(ALL_REDUCTIONS, raw=True, shape=True),
        save_config=plan,
        save_histogram=False,
    )
    uniform = collection("uniform", "u", reduction_config=reduction_config(), save_config=every(3))
    return [collection("all", ".*"), full, uniform]


def every(interval: int) -> dict:
    """The same saving plan for all modes."""
    return {mode: save_config_mode(interval) for mode in ("TRAIN", "EVAL", "PREDICT", "GLOBAL")}


def reduced(name: str, value: np.ndarray, reduction: str, absolute: bool) -> Tensor:
    """The tensor the hook must store for one reduction of a NumPy array."""
    data = np.abs(value) if absolute else value
    if reduction in NORMS:
        result = np.linalg.norm(data, ord=int(reduction[1]))
    else:
        result = getattr(np, "var" if reduction == "variance" else reduction)(data)
    prefix = "abs_" if absolute else ""
    return tensor(f"smdebug/reductions/{prefix}{reduction}/{name}", result)


def all_reductions(name: str, value: np.ndarray) -> list[Tensor]:
    """Every reduction in the order the hook stores them."""
    return [
        reduced(name, value, reduction, absolute)
        for absolute in (False, True)
        for reduction in REDUCTIONS + NORMS
    ]


def golden_hook(out_dir: Path) -> FrameworkFreeHook:
    """A hook with one collection for each kind of stored thing."""
    wanted = ["reduced", "shaped", "histograms", "losses"]
    hook = FrameworkFreeHook(
        str(out_dir),
        export_tensorboard=True,
        save_config=SaveConfig(save_interval=2),
        include_collections=wanted,
    )
    everything = ReductionConfig(
        reductions=REDUCTIONS, norms=NORMS, abs_reductions=REDUCTIONS, abs_norms=NORMS
    )
    configs = {"reduced": everything, "shaped": ReductionConfig(save_shape=True)}
    for name in wanted:
        collection = hook.get_collection(name)
        collection.include(f"^{name}/")
        collection.reduction_config = configs.get(name)
        collection.save_histogram = name == "histograms"
    return hook


def offer_all(hook: FrameworkFreeHook, step: int) -> tuple[list[Tensor], list[Shape]]:
    """Offers the tensors of one saved step; returns what must be stored."""
    matrix = np.array([[1.5, -2.0, 0.25], [4.0, 3.0, -0.5]], dtype=np.float32) + step
    vector = np.array([-7, 2, 5 + step], dtype=np.int64)
    spread = np.array([0.0, 0.5, 0.5, -1.0] if step == 0 else [0.5, 0.5, 0.25, 1.0])
    stored: list[Tensor] = []
    hook.offer("reduced/matrix", matrix)
    stored += all_reductions("reduced/matrix", matrix)
    hook.offer("reduced/vector:0", vector)
    stored += all_reductions("reduced/vector", vector)
    hook.offer("shaped/matrix", matrix)
    hook.offer("shaped/empty", np.zeros((0, 3), dtype=np.float32))
    hook.offer("ignored", matrix)
    for name, value in (
        ("histograms/spread", spread),
        ("losses/loss:0", np.float32(0.5 / (step + 1))),
        ("losses/loss:0", np.float32(0.25 / (step + 1))),
    ):
        hook.offer(name, value)
        stored.append(tensor(name, value))
    shapes = [
        Shape(f"shaped/{n}", s, f"shaped/{n}") for n, s in (("matrix", (2, 3)), ("empty", (0, 3)))
    ]
    return stored, shapes


def tensorboard_records(stored: list[Tensor], step: int) -> list[tuple[dict, bytes]]:
    """The TensorBoard records that go with the stored tensors."""
    records = []
    for t in stored:
        if t.name.startswith("histograms/"):
            tag = f"histograms/{t.name}"
            data = histogram_summary_record(tag, t.stored, WALL_TIME, step)
            records.append((histogram_meaning(tag, t.stored, step), data))
        elif t.name.startswith(("losses/", "scalar/")):
            tag = t.name.replace(":", "_")
            wall_time = t.wall_time or WALL_TIME
            value = float(t.stored[0])
            data = scalar_summary_record(tag, value, wall_time, step)
            records.append(({"tag": tag, "step": step, "scalar": value}, data))
    return records


def make_hook(run: Expectation) -> None:
    """A whole hook: reductions, shapes, histograms, scalars, TensorBoard, collections."""
    hook = golden_hook(run.root)
    mode_steps = {"TRAIN": -1, "EVAL": -1}
    for step, mode in enumerate(["TRAIN", "TRAIN", "EVAL", "TRAIN"]):
        mode_steps[mode] += 1
        saved = hook.begin_step(modes[mode])
        stored, shapes = offer_all(hook, step) if saved else ([], [])
        scalar = tensor("scalar/lr", 0.5 / (step + 1), wall_time=WALL_TIME + 1 + step)
        hook.save_scalar("lr", scalar.given, timestamp=scalar.wall_time)
        stored.append(scalar)
        hook.end_step()
        run.step(at(step, mode, mode_steps[mode]), "worker_0", stored, shapes)
        path = f"tensorboard/{mode}/{step:012d}_4711_golden.tfevents"
        run.tensorboard_file(path, tensorboard_records(stored, step))
    hook.finish()
    run.collections_file("worker_0", 1, hook_collections())
    run.ended = True


def hook_collections() -> list[dict]:
    """What the collections file of `make_hook` must say."""
    raw = reduction_config(raw=True)
    table = [
        ("reduced", ["matrix", "vector:0"], reduction_config(ALL_REDUCTIONS), False),
        ("shaped", ["empty", "matrix"], reduction_config(shape=True), False),
        ("histograms", ["spread"], raw, True),
        ("losses", ["loss:0"], raw, False),
    ]
    collections = [collection("default", reduction_config=raw, save_config=every(2))]
    for name, tensors, reductions, histogram in table:
        collections.append(
            collection(
                name,
                f"^{name}/",
                tensor_names=[f"{name}/{t}" for t in tensors],
                reduction_config=reductions,
                save_config=every(2),
                save_histogram=histogram,
            )
        )
    return collections


def make_run(name: str, about: str) -> dict:
    """Makes one run directory from scratch."""
    root = HERE / name
    shutil.rmtree(root, ignore_errors=True)
    run = Expectation(root, about, WALL_TIME)
    globals()[f"make_{name}"](run)
    return run.to_json()


def main() -> None:
    """Makes every run and writes expected.json."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The released package walks sets of names; a fixed seed fixes their order.
        os.execve(
            sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"}
        )
    quiet()
    names = ["types", "modes", "workers", "running", "devices", "shapes", "collections", "hook"]
    with (
        mock.patch("time.time", lambda: WALL_TIME),
        mock.patch("os.getpid", lambda: 4711),
        mock.patch("socket.gethostname", lambda: "golden"),
    ):
        runs = {name: make_run(name, globals()[f"make_{name}"].__doc__) for name in names}
    (HERE / "expected.json").write_text(layout({"runs": runs}) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
