"""Actions in the cloud: a real notification service, and a service of training jobs on the wire."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator

import pytest
import recorded
import s3_server as server_module
import writing
from botocore.session import get_session
from smdebug.exceptions import RuleEvaluationConditionMet
from smdebug.rules import Rule
from smdebug.rules.action import Actions
from smdebug.rules.action.message_action import MessageAction
from smdebug.rules.action.stop_training_action import StopTrainingAction
from smdebug.trials import create_trial

REGION = "eu-central-1"


class Always(Rule):
    def invoke_at_step(self, step):
        return True


@pytest.fixture
def aws(s3_server, tmp_path, monkeypatch):
    """The environment leads to a server of all services, in a region without leftovers."""
    variables = server_module.environment(s3_server.url, tmp_path)
    for name, value in {**variables, "AWS_DEFAULT_REGION": REGION}.items():
        monkeypatch.setenv(name, value)
    sns = client("sns")
    sns.create_topic(Name="SMDebugRules")
    yield
    for topic in sns.list_topics()["Topics"]:
        for found in sns.list_subscriptions_by_topic(**topic)["Subscriptions"]:
            sns.unsubscribe(SubscriptionArn=found["SubscriptionArn"])
        sns.delete_topic(**topic)


def client(service: str):
    return get_session().create_client(service)


def subscriptions() -> list[tuple[str, str, str]]:
    """(protocol, endpoint, filter) of everybody who is subscribed to the topic of rules."""
    sns = client("sns")
    (topic,) = [t["TopicArn"] for t in sns.list_topics()["Topics"]]
    assert topic.endswith(":SMDebugRules")
    return [
        (
            found["Protocol"],
            found["Endpoint"],
            sns.get_subscription_attributes(SubscriptionArn=found["SubscriptionArn"])[
                "Attributes"
            ].get("FilterPolicy", ""),
        )
        for found in sns.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]
    ]


@pytest.fixture
def listener(aws):
    """A queue that gets what is published for one endpoint; gives the messages that arrived."""
    sqs, sns = client("sqs"), client("sns")
    url = sqs.create_queue(QueueName="listener")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]

    def listen(policy: dict[str, list[str]]) -> None:
        sns.subscribe(
            TopicArn=client("sns").create_topic(Name="SMDebugRules")["TopicArn"],
            Protocol="sqs",
            Endpoint=arn["QueueArn"],
            Attributes={"FilterPolicy": json.dumps(policy)},
        )

    def received() -> list[dict]:
        found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        return [json.loads(message["Body"]) for message in found.get("Messages", [])]

    listen.received = received
    yield listen
    sqs.delete_queue(QueueUrl=url)


@pytest.mark.parametrize(
    ("described", "protocol", "endpoint", "policy"),
    [
        ('{"name": "SMS", "endpoint": "+4915112345678"}', "sms", "+4915112345678", "phone_num"),
        ('{"name": "Email", "endpoint": "Some.Body@Ex.org"}', "email", "Some.Body@Ex.org", "email"),
    ],
)
def test_an_endpoint_is_subscribed_once_with_its_filter(aws, described, protocol, endpoint, policy):
    (action,) = Actions(described, "Always")._actions
    assert action._topic_name == "SMDebugRules"
    assert action._last_subscription_response["SubscriptionArn"]
    wanted = [(protocol, endpoint, json.dumps({policy: [endpoint]}))]
    assert subscriptions() == wanted
    (again,) = Actions(described, "Other")._actions
    assert again._last_subscription_response is None
    assert subscriptions() == wanted


def test_a_hit_is_published_to_its_endpoint_alone(listener, out_dir):
    writing.step(out_dir, 3)
    writing.collections(out_dir)
    writing.end(out_dir)
    listener({"email": ["some.body@ex.org"]})
    described = [
        {"name": "email", "endpoint": "some.body@ex.org"},
        {"name": "email", "endpoint": "other@ex.org"},
        {"name": "sms", "endpoint": "+4915112345678"},
    ]
    rule = Always(create_trial(out_dir), action_str=json.dumps(described))
    with pytest.raises(RuleEvaluationConditionMet):
        rule.invoke(3)
    (message,) = listener.received()
    assert message["Subject"] == "SMDebugRule:Always fired"
    assert message["Message"] == (
        "SMDebugRule:Always fired. Evaluation of the rule Always at step 3 resulted in the "
        "condition being met."
    )
    assert message["MessageAttributes"] == {
        "email": {"Type": "String", "Value": "some.body@ex.org"}
    }
    for action in rule._actions._actions:
        assert action._last_send_mesg_response["MessageId"]


def test_the_original_call_publishes_the_given_text(listener):
    listener({"phone_num": ["+4915112345678"]})
    MessageAction("R", "sms", "+4915112345678").invoke("Look.")
    (message,) = listener.received()
    assert message["Message"] == "SMDebugRule:R fired. Look."


def test_many_subscriptions_are_looked_through(aws):
    sns = client("sns")
    topic = sns.create_topic(Name="SMDebugRules")["TopicArn"]
    for i in range(120):
        sns.subscribe(TopicArn=topic, Protocol="email", Endpoint=f"a{i}@ex.org")
    assert MessageAction("R", "email", "a119@ex.org")._last_subscription_response is None


def test_a_dry_run_does_not_even_subscribe(aws, messages):
    MessageAction("R", "email", "a@ex.org", dry_run=True).invoke("x")
    assert subscriptions() == []
    assert messages.containing("It would send a message to a@ex.org")


def test_service_errors_are_logged(aws, monkeypatch, messages):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    action = MessageAction("R", "email", "a@ex.org")
    assert messages.containing("a@ex.org could not be subscribed to the topic SMDebugRules")
    action.invoke("x")
    assert messages.containing("The topic SMDebugRules is not available")


def test_a_missing_region_is_one_sentence(aws, monkeypatch, messages):
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    MessageAction("R", "email", "a@ex.org").invoke("x")
    assert messages.containing("cannot use the AWS service sns and does nothing: You must specify")
    monkeypatch.setenv("AWS_REGION", REGION)
    assert MessageAction("R", "email", "a@ex.org")._topic_arn is not None


def test_without_boto3_one_sentence_is_logged(tmp_path):
    code = """
import sys
sys.modules["botocore.session"] = None
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("boto3", "botocore"):
            raise ModuleNotFoundError(name=name)
sys.meta_path.insert(0, Absent())
from smdebug.rules.action import Actions
text = '[{"name": "sms", "endpoint": "+1"}, {"name": "stoptraining", "training_job_prefix": "a"}]'
actions = Actions(text, "R")
assert len(actions._actions) == 2
"""
    lines = recorded.run(code).splitlines()
    assert len(lines) == 2
    for line, service in zip(lines, ("sns", "sagemaker"), strict=True):
        assert f"needs the AWS service {service} and does nothing" in line
        assert line.endswith("pip install boto3")


# --- training jobs


class Jobs(http.server.ThreadingHTTPServer):
    """The part of the service that lists and stops training jobs, in pages of two."""

    def __init__(self, *names: str, failures: int = 0) -> None:
        self.names = list(names)
        self.failures = failures
        self.asked: list[dict] = []
        self.stopped: list[str] = []
        super().__init__(("127.0.0.1", 0), _JobsHandler)


class _JobsHandler(http.server.BaseHTTPRequestHandler):
    server: Jobs

    def do_POST(self):
        fields = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        verb = self.headers["X-Amz-Target"].split(".")[1]
        if verb == "ListTrainingJobs":
            self.server.asked.append(fields)
            if self.server.failures:
                self.server.failures -= 1
                return self.answer(400, {"__type": "AccessDeniedException", "message": "no"})
            return self.answer(200, self.page(fields))
        assert verb == "StopTrainingJob"
        self.server.stopped.append(fields["TrainingJobName"])
        return self.answer(200, {})

    def page(self, fields):
        found = [name for name in self.server.names if fields["NameContains"] in name]
        start = int(fields.get("NextToken", 0))
        summaries = [
            {
                "TrainingJobName": name,
                "TrainingJobArn": f"arn:aws:sagemaker:x:1:training-job/{name}",
                "CreationTime": 1.0,
                "TrainingJobStatus": "InProgress",
            }
            for name in found[start : start + 2]
        ]
        more = {"NextToken": str(start + 2)} if start + 2 < len(found) else {}
        return {"TrainingJobSummaries": summaries, **more}

    def answer(self, code, fields):
        body = json.dumps(fields).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/x-amz-json-1.1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def jobs(tmp_path, monkeypatch) -> Iterator:
    """Starts a service with these running jobs."""
    started: list[tuple[Jobs, threading.Thread]] = []

    def start(*names: str, failures: int = 0) -> Jobs:
        service = Jobs(*names, failures=failures)
        thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        started.append((service, thread))
        url = f"http://127.0.0.1:{service.server_port}"
        for name, value in server_module.environment(url, tmp_path).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        return service

    yield start
    for service, thread in started:
        service.shutdown()
        thread.join()
        service.server_close()


STOP = '{"name": "StopTraining", "Training_Job_Prefix": "Mnist-Job"}'


def test_the_only_match_is_stopped(jobs):
    service = jobs("other-Mnist-Job-1", "x-Mnist-Job", "Mnist-Job-7", "y-Mnist-Job-1")
    actions = Actions(STOP, "R")
    assert actions._actions[0]._training_job_prefix == "Mnist-Job"
    assert len(service.asked) == 2 and service.asked[1]["NextToken"] == "2"
    assert service.asked[0] == {
        "SortBy": "CreationTime",
        "SortOrder": "Descending",
        "StatusEquals": "InProgress",
        "NameContains": "Mnist-Job",
    }
    assert service.stopped == []
    actions.invoke("x")
    actions.invoke("x")
    assert service.stopped == ["Mnist-Job-7"]


@pytest.mark.parametrize(
    ("running", "found"),
    [
        (["Mnist-Job-1", "x", "y-Mnist-Job", "Mnist-Job-2"], "Mnist-Job-1, Mnist-Job-2"),
        (["mnist-job-1", "y-Mnist-Job"], "none"),
        ([], "none"),
    ],
)
def test_nothing_is_stopped_unless_exactly_one_matches(jobs, messages, running, found):
    service = jobs(*running)
    Actions(STOP, "R").invoke("x")
    assert service.stopped == []
    assert messages.containing(f"but these were found: {found}.")


def test_errors_of_the_service_are_survived(jobs, messages):
    service = jobs("Mnist-Job-1", failures=4)
    Actions(STOP, "R").invoke("x")
    assert service.stopped == ["Mnist-Job-1"]
    assert messages.containing("The running training jobs could not be listed for rule R")


def test_after_five_errors_nothing_is_stopped(jobs, messages):
    service = jobs("Mnist-Job-1", failures=5)
    Actions(STOP, "R").invoke("x")
    assert service.stopped == [] and len(service.asked) == 5
    assert messages.containing("but these were found: none.")


def test_a_dry_run_stops_no_job(jobs, messages):
    service = jobs("Mnist-Job-1")
    StopTrainingAction("R", "Mnist-Job", dry_run=True).invoke("x")
    assert service.stopped == []
    assert messages.containing("It would stop the training job whose name begins with 'Mnist-Job'")
