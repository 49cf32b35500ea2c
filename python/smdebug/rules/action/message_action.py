"""Tells somebody by e-mail or SMS through the notification service of AWS."""

from __future__ import annotations

import json
from typing import Any

from smdebug.logger import get_logger
from smdebug.rules.action.aws import aws_client
from smdebug.rules.action.base import Action, ActionFailed
from smdebug.rules.hit import Hit

TOPIC = "SMDebugRules"
# The attribute by which a subscription gets only its own messages.
_ATTRIBUTES = {"sms": "phone_num", "email": "email"}


class MessageAction(Action):
    """Subscribes the endpoint to the topic when it is made, so that it can be confirmed in time."""

    def __init__(
        self, rule_name: str, message_type: str, message_endpoint: str, **options: Any
    ) -> None:
        # The service is what tells jobs and rules of different hosts of each other.
        super().__init__(**{"any_host": True, **options})
        self.rule_name = rule_name
        self._topic_name = TOPIC
        self._protocol = message_type
        self._endpoint = message_endpoint
        self._last_subscription_response: Any = None
        self._last_send_mesg_response: Any = None
        self._topic_arn: str | None = None
        self._sns: Any = None if self.dry_run else aws_client("sns", rule_name)
        if self._sns is not None:
            self._subscribe()

    @property
    def _filter(self) -> dict[str, list[str]]:
        return {_ATTRIBUTES[self._protocol]: [self._endpoint]}

    def _subscribe(self) -> None:
        try:
            self._topic_arn = self._sns.create_topic(Name=self._topic_name)["TopicArn"]
            if not self._is_subscribed():
                self._last_subscription_response = self._sns.subscribe(
                    TopicArn=self._topic_arn,
                    Protocol=self._protocol,
                    Endpoint=self._endpoint,
                    Attributes={"FilterPolicy": json.dumps(self._filter)},
                    ReturnSubscriptionArn=True,
                )
        except Exception as error:  # whatever the service says, the rule goes on
            get_logger().error(
                f"{self._endpoint} could not be subscribed to the topic {self._topic_name} for rule "
                f"{self.rule_name}: {error}"
            )

    def _is_subscribed(self) -> bool:
        pages = self._sns.get_paginator("list_subscriptions_by_topic")
        return any(
            (found["Protocol"], found["Endpoint"]) == (self._protocol, self._endpoint)
            for page in pages.paginate(TopicArn=self._topic_arn)
            for found in page["Subscriptions"]
        )

    def intent(self, hit: Hit) -> str:
        return f"send a message to {self._endpoint} through the topic {self._topic_name}"

    def perform(self, hit: Hit) -> str:
        if self._sns is None or self._topic_arn is None:
            raise ActionFailed(f"The topic {self._topic_name} is not available.")
        subject = f"SMDebugRule:{hit.rule} fired"
        self._last_send_mesg_response = self._sns.publish(
            TopicArn=self._topic_arn,
            Subject=subject,
            Message=f"{subject}. {hit.message}",
            MessageAttributes={
                _ATTRIBUTES[self._protocol]: {"DataType": "String", "StringValue": self._endpoint}
            },
        )
        return f"A message to {self._endpoint} was given to the topic {self._topic_name}."
