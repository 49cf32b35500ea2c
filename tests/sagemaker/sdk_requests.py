"""Prints what the SageMaker SDK sends for a set of training jobs, as one JSON object by name.

Runs in the environment `sagemaker`, without a network and without an account: the requests are
built and never sent.
"""

from __future__ import annotations

import inspect
import json
import logging
import os
import sys
from typing import Any

os.environ.update(
    SAGEMAKER_SUPPRESS_V2_WARNING="1",
    AWS_ACCESS_KEY_ID="none",
    AWS_SECRET_ACCESS_KEY="none",
    AWS_DEFAULT_REGION="us-east-1",
    AWS_EC2_METADATA_DISABLED="true",
)
logging.disable(logging.CRITICAL)

import boto3  # noqa: E402
from sagemaker.debugger import (  # noqa: E402
    CollectionConfig,
    DebuggerHookConfig,
    Rule,
    TensorBoardOutputConfig,
    rule_configs,
)
from sagemaker.estimator import Estimator, _TrainingJob  # noqa: E402
from sagemaker.session import Session  # noqa: E402

ALL_REDUCTIONS = ",".join(
    prefix + name
    for prefix in ("", "abs_")
    for name in ("min", "max", "median", "mean", "std", "variance", "sum", "prod", "l1", "l2")
)


def request(**arguments: Any) -> dict[str, Any]:
    """The request that starting a job with these arguments of an Estimator would send."""
    session = Session(boto_session=boto3.Session(region_name="us-east-1"))
    arguments.setdefault("output_path", "s3://bucket/out")
    estimator = Estimator(
        image_uri="123456789012.dkr.ecr.us-east-1.amazonaws.com/image:1",
        role="arn:aws:iam::123456789012:role/training",
        instance_count=1,
        instance_type="ml.m5.large",
        sagemaker_session=session,
        disable_profiler=True,
        **arguments,
    )
    estimator._prepare_for_training(job_name="job-1")
    train = _TrainingJob._get_train_args(estimator, None, None)
    known = inspect.signature(session._get_train_request).parameters
    return session._get_train_request(**{k: v for k, v in train.items() if k in known})


def hook(
    collections: dict[str, dict[str, Any] | None] | None = None, **parameters: Any
) -> DebuggerHookConfig:
    """A hook configuration; a mode's dot is written as two underscores."""
    return DebuggerHookConfig(
        s3_output_path="s3://bucket/tensors",
        hook_parameters={k.replace("__", "."): v for k, v in parameters.items()} or None,
        collection_configs=[
            CollectionConfig(
                name=name,
                parameters=values and {k.replace("__", "."): v for k, v in values.items()},
            )
            for name, values in (collections or {}).items()
        ]
        or None,
    )


def requests() -> dict[str, dict[str, Any]]:
    """The jobs, by name."""
    hooks = {
        "nothing": hook(),
        "save_all": hook(save_all="true", save_interval="3"),
        "regex": hook(include_regex="relu,tanh", save_steps="1,4", save_interval="100"),
        "interval_by_mode": hook(
            {"weights": None}, save_interval="4", train__save_interval="2", eval__save_steps="1"
        ),
        "start_and_end": hook({"weights": {"start_step": "2", "end_step": "5"}}, save_interval="1"),
        "precedence": hook(
            {
                "weights": {"save_interval": "3", "train__save_interval": "5"},
                "biases": {"eval__save_interval": "2"},
            },
            save_interval="7",
            train__save_interval="4",
        ),
        "all_reductions": hook({"gradients": {"save_interval": "1", "reductions": ALL_REDUCTIONS}}),
        "reductions_and_values": hook(
            {"weights": {"reductions": "mean,l2", "save_raw_tensor": "true", "save_shape": "True"}},
            save_interval="1",
        ),
        "hook_reductions": hook({"weights": None}, reductions="min,max,mean", save_interval="1"),
        "no_losses": hook({"losses": {"end_step": 0}}),
        "custom": hook(
            {"mine": {"include_regex": "relu.*output", "save_interval": "2"}}, save_interval="500"
        ),
        "numbers_as_numbers": hook({"weights": {"save_interval": 2, "start_step": 1}}),
    }
    jobs = {name: request(debugger_hook_config=config, rules=[]) for name, config in hooks.items()}
    jobs["rules"] = request(
        rules=[
            Rule.sagemaker(
                rule_configs.vanishing_gradient(), rule_parameters={"threshold": "1e-4"}
            ),
            Rule.sagemaker(rule_configs.loss_not_decreasing()),
        ]
    )
    jobs["spot"] = request(
        debugger_hook_config=hook({"weights": {"save_interval": "1"}}),
        tensorboard_output_config=TensorBoardOutputConfig("s3://bucket/tensorboard"),
        checkpoint_s3_uri="s3://bucket/checkpoints",
        checkpoint_local_path="/opt/ml/checkpoints",
        use_spot_instances=True,
        max_run=100,
        max_wait=200,
        hyperparameters={"lr": 0.1, "steps": 12, "name": "a b"},
        environment={"GREETING": "hello"},
    )
    return jobs


if __name__ == "__main__":
    json.dump(requests(), sys.stdout, indent=1)
