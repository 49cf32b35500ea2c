"""Clients of AWS services, made when an action needs one."""

from __future__ import annotations

import os
from typing import Any

from smdebug.logger import get_logger


def aws_client(service: str, rule_name: str) -> Any:
    """A client as boto3 makes it; None, and one sentence in the log, if there can be none.

    Only botocore is needed, which comes with boto3. Regions, credentials and AWS_ENDPOINT_URL are
    taken from where botocore takes them; AWS_REGION names a region, too.
    """
    try:
        from botocore.config import Config
        from botocore.session import get_session
    except ModuleNotFoundError:
        get_logger().error(
            f"An action of rule {rule_name} needs the AWS service {service} and does nothing, because "
            "boto3 is not installed; install it with: pip install boto3"
        )
        return None
    try:
        session = get_session()
        region = session.get_config_variable("region") or os.environ.get("AWS_REGION")
        # A rule must not hang for minutes where there is no network.
        patience = Config(connect_timeout=10, read_timeout=30, retries={"max_attempts": 2})
        return session.create_client(service, region_name=region or None, config=patience)
    except Exception as error:  # a missing region, broken configuration files
        get_logger().error(
            f"An action of rule {rule_name} cannot use the AWS service {service} and does nothing: {error}"
        )
        return None
