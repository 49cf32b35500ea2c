"""Runs a script in a local replica of a SageMaker training container.

The command `smdebug sagemaker-local`: what the SDK asks for becomes the files and the variables that
a container has, below a directory of one's choice, and the script runs as it would there.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from smdebug import _core
from smdebug.child import run_child
from smdebug.exceptions import SMDebugRuntimeError, SMDebugValueError
from smdebug.logger import core_log, get_logger

HOST = "algo-1"
CONFIG = "/opt/ml/input/config"
METRICS = "/opt/ml/output/metrics/sagemaker"
# Folders that a container has from the beginning.
FOLDERS = (
    CONFIG,
    "/opt/ml/input/data",
    "/opt/ml/model",
    "/opt/ml/output/data",
    METRICS,
    "/opt/ml/checkpoints",
)
# Parts of a request that name a folder: file, variable, and the folder if none is named.
PLACES = {
    "DebugHookConfig": (
        "debughookconfig.json",
        "SMDEBUG_CONFIG_FILE_PATH",
        "/opt/ml/output/tensors",
    ),
    "TensorBoardOutputConfig": (
        "tensorboardoutputconfig.json",
        "TENSORBOARD_CONFIG_FILE_PATH",
        "/opt/ml/output/tensorboard",
    ),
    "CheckpointConfig": (
        "checkpointconfig.json",
        "CHECKPOINT_CONFIG_FILE_PATH",
        "/opt/ml/checkpoints",
    ),
}
# Parts of a request that a container sees in another way, and those that it does not see.
SEEN = ("TrainingJobName", "HyperParameters", "Environment", "ResourceConfig", "InputDataConfig")
NOT_SEEN = (
    "AlgorithmSpecification",
    "RoleArn",
    "OutputDataConfig",
    "StoppingCondition",
    "VpcConfig",
    "Tags",
    "EnableNetworkIsolation",
    "EnableInterContainerTrafficEncryption",
    "EnableManagedSpotTraining",
    "DebugRuleConfigurations",
    "ProfilerConfig",
    "ProfilerRuleConfigurations",
    "ExperimentConfig",
    "RetryStrategy",
    "RemoteDebugConfig",
    "InfraCheckConfig",
    "SessionChainingConfig",
)


def read_request(source: str) -> dict[str, Any]:
    """The request that a file or a JSON text holds, whole or in part."""
    if source.startswith("{"):
        name, text = "--config", source
    else:
        name = source
        with open(os.path.expanduser(source), encoding="utf-8") as file:
            text = file.read()
    document = _core.parse_json(text, name)
    if not isinstance(document, dict):
        raise SMDebugValueError(f"A configuration must be a JSON object: {name}")
    if {"HookParameters", "CollectionConfigurations"} & set(document):
        document = {"DebugHookConfig": document}
    known = [*PLACES, *SEEN, *NOT_SEEN]
    for key in set(document) - set(known):
        near = get_close_matches(key, known, 1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise SMDebugValueError(
            f"'{key}' is no part of a training job's request.{hint} A folder's own configuration "
            f'stands below its name, such as {{"CheckpointConfig": {{...}}}}: {name}'
        )
    for key in (*PLACES, "HyperParameters", "Environment", "ResourceConfig"):
        if not isinstance(document.get(key, {}), dict):
            raise SMDebugValueError(f"{key} must be a JSON object: {name}")
    channels: Any = document.get("InputDataConfig", [])
    if not isinstance(channels, list) or not all(
        isinstance(c, dict) and isinstance(c.get("ChannelName"), str) for c in channels
    ):
        raise SMDebugValueError(
            f"InputDataConfig must be a list of objects with a ChannelName: {name}"
        )
    return document


def check_request(request: dict[str, Any]) -> None:
    """Raises for what a hook would refuse, and warns of what it would ignore."""
    if "DebugHookConfig" in request:
        for warning in _core.parse_hook_config(request["DebugHookConfig"])["warnings"]:
            get_logger().warning(warning)
    for key in PLACES:
        place = request.get(key, {}).get("LocalPath")
        if place is not None and not (isinstance(place, str) and place.startswith("/")):
            raise SMDebugValueError(
                f"LocalPath of {key} must be a path from the root of the container, not {place!r}."
            )
    for key in ("HyperParameters", "Environment"):
        for name, value in request.get(key, {}).items():
            if not isinstance(value, str):
                raise SMDebugValueError(
                    f"{key} must hold strings, as the SDK makes them, but '{name}' is {value!r}."
                )


@dataclass
class Container:
    """The files below a directory that stands for the root of a container."""

    root: Path
    request: dict[str, Any]
    places: dict[str, Path] = field(default_factory=dict)

    def path(self, inside: str) -> Path:
        """Where something of the container lies here."""
        return self.root / inside.lstrip("/")

    def __post_init__(self) -> None:
        for key, (_, _, default) in PLACES.items():
            if key in self.request:
                self.places[key] = self.path(self.request[key].get("LocalPath") or default)

    @property
    def channels(self) -> list[str]:
        return [channel["ChannelName"] for channel in self.request["InputDataConfig"]]

    @property
    def hyperparameters(self) -> dict[str, str]:
        return self.request["HyperParameters"]

    @property
    def resources(self) -> dict[str, Any]:
        return {
            "current_host": HOST,
            "hosts": [HOST],
            "network_interface_name": "lo",
            "current_instance_type": self.request["ResourceConfig"].get("InstanceType", "local"),
            "current_group_name": "homogeneousCluster",
        }

    def write(self) -> None:
        """Makes the folders and the files of the configuration."""
        run = self.places.get("DebugHookConfig")
        if run is not None and (run / _core.END_MARKER).exists():
            raise SMDebugRuntimeError(
                f"A job has ended here; choose another --root or remove this one: {self.root}"
            )
        for folder in FOLDERS:
            self.path(folder).mkdir(parents=True, exist_ok=True)
        for channel in self.channels:
            self.path(f"/opt/ml/input/data/{channel}").mkdir(exist_ok=True)
        files: dict[str, Any] = {
            "hyperparameters.json": self.hyperparameters,
            "resourceconfig.json": self.resources,
            "inputdataconfig.json": {name: {} for name in self.channels},
        }
        for key, (name, _, _) in PLACES.items():
            if key in self.places:
                files[name] = {**self.request[key], "LocalPath": str(self.places[key])}
            else:  # of an earlier try
                self.path(f"{CONFIG}/{name}").unlink(missing_ok=True)
        for name, content in files.items():
            self.path(f"{CONFIG}/{name}").write_text(json.dumps(content, indent=1) + "\n")

    def arguments(self) -> list[str]:
        """The hyperparameters as arguments, as they reach a script."""
        words = []
        for name, value in self.hyperparameters.items():
            if not name.startswith("sagemaker_"):
                words += [f"--{name}", str(plain(value))]
        return words

    def variables(self, user_arguments: Sequence[str]) -> dict[str, str]:
        """What the environment of a container says."""
        hyperparameters = {name: plain(value) for name, value in self.hyperparameters.items()}
        region = os.environ.get("AWS_REGION", "us-east-1")
        job = self.request["TrainingJobName"]
        found = {
            "TRAINING_JOB_NAME": job,
            "TRAINING_JOB_ARN": f"arn:aws:sagemaker:{region}:000000000000:training-job/{job}",
            "AWS_REGION": region,
            "SAGEMAKER_METRICS_DIRECTORY": str(self.path(METRICS)),
            "SM_MODEL_DIR": str(self.path("/opt/ml/model")),
            "SM_INPUT_DIR": str(self.path("/opt/ml/input")),
            "SM_INPUT_CONFIG_DIR": str(self.path(CONFIG)),
            "SM_OUTPUT_DIR": str(self.path("/opt/ml/output")),
            "SM_OUTPUT_DATA_DIR": str(self.path("/opt/ml/output/data")),
            "SM_CURRENT_HOST": HOST,
            "SM_HOSTS": json.dumps([HOST]),
            "SM_RESOURCE_CONFIG": json.dumps(self.resources),
            "SM_NUM_CPUS": str(multiprocessing.cpu_count()),
            "SM_CHANNELS": json.dumps(self.channels),
            "SM_HPS": json.dumps(hyperparameters),
            "SM_USER_ARGS": json.dumps([*self.arguments(), *user_arguments]),
            "PYTHONUNBUFFERED": "1",
        }
        for name, value in hyperparameters.items():
            found[f"SM_HP_{name.upper()}"] = value if isinstance(value, str) else json.dumps(value)
        for channel in self.channels:
            folder = self.path(f"/opt/ml/input/data/{channel}")
            found[f"SM_CHANNEL_{channel.upper()}"] = str(folder)
        for file, variable, _ in PLACES.values():
            found[variable] = str(self.path(f"{CONFIG}/{file}"))
        return found | self.request["Environment"]


def plain(text: str) -> Any:
    """The value that a hyperparameter's text stands for; text that is no JSON stands for itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def run_script(command: Sequence[str], environment: dict[str, str]) -> int:
    """Runs a command with our streams; its exit code, and 128 + n after signal n."""
    code = run_child(command, environment)
    return code if code >= 0 else 128 - code


def steps_of(run: Path) -> int:
    """How many steps a run has; 0 for what is no run."""
    storage = _core.Storage.open(str(run))
    trial = _core.Trial.open(storage, begin=0, end=None, check=False, log=core_log)
    trial.refresh()
    return len(trial.steps(_core.ModeKeys.GLOBAL, True))


def report(container: Container, code: int) -> dict[str, Any]:
    """Where the things are that the job left behind."""
    found: dict[str, Any] = {"exit_code": code, "root": str(container.root)}
    run = container.places.get("DebugHookConfig")
    if run is not None and run.is_dir():
        found["tensors"] = {"path": str(run), "steps": steps_of(run)}
    metrics = container.path(METRICS)
    files = sorted(metrics.glob("*.json"))
    if files:
        lines = sum(file.read_bytes().count(b"\n") for file in files)
        found["metrics"] = {"path": str(metrics), "lines": lines}
    for key, name in (
        ("CheckpointConfig", "checkpoints"),
        ("TensorBoardOutputConfig", "tensorboard"),
    ):
        place = container.places.get(key)
        if place is not None and place.is_dir() and any(place.iterdir()):
            found[name] = {"path": str(place)}
    model = container.path("/opt/ml/model")
    if any(model.iterdir()):
        found["model"] = {"path": str(model)}
    return found


def show(found: dict[str, Any]) -> None:
    """The report for people, apart from what the script prints."""
    lines = [f"smdebug: the script has ended with exit code {found['exit_code']}."]
    for name in ("tensors", "metrics", "checkpoints", "tensorboard", "model"):
        if name in found:
            numbers = [f"{n} {what}" for what, n in found[name].items() if what != "path"]
            lines.append("  ".join([f"{name:11}", found[name]["path"], *numbers]))
    if "tensors" in found:
        lines.append(f"Look at it with: smdebug info {found['tensors']['path']}")
    else:
        lines.append("No tensors were recorded.")
    print(*lines, sep="\n", file=sys.stderr)


def run(root: str, configs: Sequence[str], script: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Runs the script in a container below `root`; where its things are, and its exit code."""
    if not os.path.isfile(script):
        raise SMDebugValueError(f"There is no script to run: {script}")
    request: dict[str, Any] = {} if configs else {"DebugHookConfig": {}}
    for source in configs:
        request |= read_request(source)
    check_request(request)
    request = {
        "TrainingJobName": "local-job",
        "HyperParameters": {},
        "Environment": {},
        "ResourceConfig": {},
        "InputDataConfig": [],
    } | request
    container = Container(Path(os.path.expanduser(root)).absolute(), request)
    container.write()
    program = [sys.executable, script] if script.endswith(".py") else [os.path.abspath(script)]
    environment = {**os.environ, **container.variables(arguments)}
    code = run_script([*program, *container.arguments(), *arguments], environment)
    place = container.places.get("DebugHookConfig")
    if code == 0 and place is not None and place.is_dir():
        (place / _core.END_MARKER).touch()  # as the platform does
    return report(container, code)
