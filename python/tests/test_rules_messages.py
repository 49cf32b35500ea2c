"""Actions that tell somebody: webhooks, mail and SMS, against real local servers."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import http.server
import json
import socketserver
import threading
from pathlib import Path

import pytest
from smdebug.exceptions import SMDebugError
from smdebug.rules.action import SMS, Email, Webhook
from smdebug.rules.hit import Hit


@pytest.fixture
def hit(tmp_path: Path) -> Hit:
    return Hit("Above", 7, "Too high.", "TRAIN", 3, run="run", path=str(tmp_path), time=12.5)


# --- web services


class Service(http.server.ThreadingHTTPServer):
    """Notes what is posted and answers what the test wants."""

    def __init__(self, *answers: int):
        self.answers = list(answers)
        self.posted = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posted.append((self.path, dict(self.headers), body))
        code = self.server.answers.pop(0) if self.server.answers else 200
        if code == 0:
            self.connection.close()
            return
        self.send_response(code)
        if code == 302:
            self.send_header("Location", self.server.url)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self):
        self.server.posted.append((self.path, dict(self.headers), b"GET"))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(server):
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")


def test_a_webhook_posts_the_record(hit):
    with serving(Service()) as service:
        Webhook(service.url, headers={"Authorization": "Bearer x"}).invoke("", hit)
    ((path, headers, body),) = service.posted
    assert path == "/hook" and json.loads(body) == hit.record()
    assert headers["Content-Type"] == "application/json"
    assert headers["Authorization"] == "Bearer x"
    assert "X-SMDebug-Signature" not in {name.title() for name in headers}


def test_a_webhook_is_signed(hit, monkeypatch, messages):
    with serving(Service()) as service:
        action = Webhook(service.url, secret_env="HOOK_SECRET")
        action.invoke("", hit)
        assert messages.containing("The environment variable HOOK_SECRET") and not service.posted
        monkeypatch.setenv("HOOK_SECRET", "geheim")
        action.invoke("", hit)
    ((_, headers, body),) = service.posted
    found = {name.lower(): value for name, value in headers.items()}["x-smdebug-signature"]
    assert found == "sha256=" + hmac.new(b"geheim", body, hashlib.sha256).hexdigest()
    assert b"geheim" not in body


@pytest.mark.parametrize(
    ("template", "kind", "body"),
    [
        ({"text": "$rule at $step: $message", "n": [1, "$mode"]}, "application/json", None),
        ("$rule at $step, $unknown", "text/plain; charset=utf-8", b"Above at 7, $unknown"),
    ],
)
def test_a_template_decides_what_is_posted(hit, template, kind, body):
    quoted = Hit(**{**vars(hit), "message": 'a "b" $rule'})
    with serving(Service()) as service:
        Webhook(service.url, template=template).invoke("", quoted)
    ((_, headers, posted),) = service.posted
    assert headers["Content-Type"] == kind
    if body is None:
        assert json.loads(posted) == {"text": 'Above at 7: a "b" $rule', "n": [1, "TRAIN"]}
    else:
        assert posted == body


def test_a_webhook_tries_again(hit, messages):
    with serving(Service(500, 0, 200)) as service:
        Webhook(service.url, backoff_s=0).invoke("", hit)
    assert len(service.posted) == 3
    assert messages.containing("The hit was posted to")


def test_a_webhook_gives_up(hit, messages):
    with serving(Service(500, 503, 500, 500)) as service:
        Webhook(service.url, backoff_s=0).invoke("", hit)
    assert len(service.posted) == 3
    assert messages.containing("answered 500 Internal Server Error, after 3 attempts")


@pytest.mark.parametrize("code", [302, 400, 403])
def test_a_refused_post_is_not_repeated(hit, messages, code):
    with serving(Service(code)) as service:
        Webhook(service.url, backoff_s=0).invoke("", hit)
    assert len(service.posted) == 1
    assert messages.containing(f"The service answered {code}")


def test_a_service_that_is_silent_or_absent_is_a_failure(hit, messages):
    with socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as silent:
        url = f"http://127.0.0.1:{silent.server_address[1]}"
        Webhook(url, timeout_s=0.05, backoff_s=0, attempts=2).invoke("", hit)
    assert messages.containing("could not be reached") and messages.containing("after 2 attempts")
    Webhook(url, attempts=1).invoke("", hit)
    assert messages.containing("Connection refused")


# --- mail and SMS


class MailServer(socketserver.ThreadingTCPServer):
    """A mail server that knows as much SMTP as a mail needs, with a password."""

    allow_reuse_address = True

    def __init__(self):
        self.mails = []
        self.logins = []
        super().__init__(("127.0.0.1", 0), _MailSession)


class _MailSession(socketserver.StreamRequestHandler):
    def say(self, text):
        self.wfile.write(text.encode() + b"\r\n")

    def handle(self):
        self.say("220 mail")
        mail = {}
        while line := self.rfile.readline().decode().strip():
            verb = line.split()[0].upper()
            if verb == "EHLO":
                self.say("250-mail")
                self.say("250 AUTH PLAIN")
            elif verb == "AUTH":
                self.server.logins.append(base64.b64decode(line.split()[2]).split(b"\0")[1:])
                good = self.server.logins[-1] == [b"me", b"secret"]
                self.say("235 welcome" if good else "535 no")
            elif verb in ("MAIL", "RCPT"):
                mail[verb] = line
                self.say("250 fine")
            elif verb == "DATA":
                self.say("354 go on")
                lines = []
                while (text := self.rfile.readline().decode().rstrip("\r\n")) != ".":
                    lines.append(text)
                self.server.mails.append({**mail, "text": "\n".join(lines)})
                self.say("250 taken")
            elif verb == "QUIT":
                self.say("221 bye")
                return
            else:
                self.say("250 fine")


def mail_action(server, **settings) -> Email:
    return Email(
        "some.body+x@Example.org",
        host="127.0.0.1",
        port=server.server_address[1],
        sender="rules@example.org",
        **{"tls": "none", **settings},
    )


def test_a_mail_is_sent(hit):
    with serving(MailServer()) as server:
        mail_action(server).invoke("", hit)
    (mail,) = server.mails
    assert mail["MAIL"].lower().startswith("mail from:<rules@example.org>")
    assert mail["RCPT"].lower().startswith("rcpt to:<some.body+x@example.org>")
    assert "Subject: SMDebugRule:Above fired\n" in mail["text"]
    assert "SMDebugRule:Above fired. Too high." in mail["text"]
    assert server.logins == []


def test_the_password_comes_from_the_environment(hit, monkeypatch, messages):
    with serving(MailServer()) as server:
        action = mail_action(server, user="me", secret_env="MAIL_SECRET")
        action.invoke("", hit)
        assert messages.containing("The environment variable MAIL_SECRET") and not server.mails
        monkeypatch.setenv("MAIL_SECRET", "wrong")
        action.invoke("", hit)
        assert messages.containing("SMTPAuthenticationError") and not server.mails
        monkeypatch.setenv("MAIL_SECRET", "secret")
        action.invoke("", hit)
    assert len(server.mails) == 1 and server.logins[-1] == [b"me", b"secret"]


def test_a_mail_is_not_sent_in_the_clear_if_it_should_not(hit, messages):
    with serving(MailServer()) as server:
        mail_action(server, tls="starttls").invoke("", hit)
        assert server.mails == []
    assert messages.containing("STARTTLS extension not supported by server")


def test_a_rule_name_cannot_smuggle_headers_into_a_mail(hit, messages):
    with serving(MailServer()) as server:
        mail_action(server).invoke("", Hit("R\nBcc: other@example.org", 1, "x"))
    assert server.mails == [] and messages.containing("Action Email of rule")


def test_an_sms_goes_through_a_webhook(hit, messages):
    with serving(Service()) as service:
        SMS("+4912345", webhook=service.url).invoke("", hit)
        own = {"url": service.url, "template": {"body": "$message"}}
        SMS("+4912345", webhook=own).invoke("", hit)
    bodies = [json.loads(body) for _, _, body in service.posted]
    assert bodies == [
        {"to": "+4912345", "text": "SMDebugRule:Above fired. Too high."},
        {"body": "Too high."},
    ]


def test_an_sms_goes_through_a_mail_gateway(hit):
    with serving(MailServer()) as server:
        gateway = {
            "email_address": "4912345@sms.example.org",
            "host": "127.0.0.1",
            "port": server.server_address[1],
            "tls": "none",
        }
        SMS("+4912345", gateway=gateway).invoke("", hit)
    assert server.mails[0]["RCPT"].lower().startswith("rcpt to:<4912345@sms.example.org>")


def test_an_sms_without_transport_is_logged(hit, messages):
    SMS("+4912345").invoke("", hit)
    assert messages.containing("needs a webhook or a gateway, and none is configured")
    with pytest.raises(SMDebugError, match="not both"):
        SMS("+1", webhook="http://a", gateway={})
