"""Rules on real clusters of Dask and Ray give the outcomes that they give here."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from typing import Any

import judging
import pytest
from distributed import Client, LocalCluster
from smdebug.rules import run_rules
from smdebug.rules.executors import SerialExecutor
from smdebug.rules.executors.dask import dask_executor
from smdebug.rules.executors.ray import RayExecutor

RULES = [judging.Above, judging.far_above, (judging.Above, {"threshold": 4}), judging.Broken]


@pytest.fixture(scope="module")
def dask() -> Iterator[Client]:
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


def check(executor: Executor, runs: list[Any]) -> None:
    """The outcomes are those of this process, and come from others."""
    serial = run_rules(runs, RULES, SerialExecutor())
    assert {outcome.status for outcome in serial} == {"NoIssuesFound", "IssuesFound", "Error"}
    assert run_rules(runs, RULES, executor) == serial
    assert run_rules(runs[::-1], RULES, executor) == serial
    assert run_rules(runs[0], RULES, executor) == run_rules(runs[0], RULES, SerialExecutor())
    assert executor.submit(os.getpid).result() != os.getpid()


def test_dask_gives_the_same_outcomes(dask, runs):
    check(dask_executor(dask), runs)
    check(dask_executor(), runs)  # the client of the program


def test_dask_asks_again_for_runs_that_may_have_grown(dask):
    executor = dask_executor(dask)
    futures = [executor.submit(os.urandom, 8) for _ in range(2)]
    assert futures[0].result() != futures[1].result()


def test_ray_gives_the_same_outcomes(ray, runs):
    check(RayExecutor(), runs)
    check(RayExecutor(num_cpus=0.5), runs)


def test_what_a_task_raises_comes_back(dask, ray):
    for executor in (dask_executor(dask), RayExecutor()):
        future = executor.submit(int, "no number")
        with pytest.raises(ValueError, match="no number"):
            future.result()


@pytest.mark.parametrize(
    ("module", "call", "package"),
    [("dask", "dask_executor()", "dask[distributed]"), ("ray", "RayExecutor()", "ray")],
)
def test_a_missing_package_is_named(module, call, package):
    code = (
        f"import sys; sys.modules['ray'] = sys.modules['distributed'] = None\n"
        f"from smdebug.rules.executors.{module} import *\n"
        f"try: {call}\nexcept NotImplementedError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert "pip install" in done.stdout and package in done.stdout
