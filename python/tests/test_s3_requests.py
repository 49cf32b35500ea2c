"""What is sent to S3: signatures against botocore's, and what wrong answers lead to."""

from __future__ import annotations

import email.utils
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import s3_server as support
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from smdebug import _core
from smdebug.credentials import botocore_credentials
from smdebug.exceptions import (
    SMDebugNotImplementedError,
    SMDebugRuntimeError,
    SMDebugValueError,
)

ACCESS, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
UPLOAD = b"<InitiateMultipartUploadResult><UploadId>u/1</UploadId></InitiateMultipartUploadResult>"
Answer = tuple[int, dict[str, str], bytes]


class Request:
    """What arrived."""

    def __init__(self, handler: BaseHTTPRequestHandler) -> None:
        self.method = handler.command
        self.target = handler.path
        self.headers = {name.lower(): value for name, value in handler.headers.items()}
        self.body = handler.rfile.read(int(self.headers.get("content-length", 0)))


class FakeServer:
    """Answers with what a function says; keeps the requests."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answer: Callable[[Request], Answer] = lambda request: (200, {}, b"")
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                request = Request(self)
                fake.requests.append(request)
                status, headers, body = fake.answer(request)
                self.send_response_only(status)
                headers.setdefault("Date", email.utils.formatdate(usegmt=True))
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                if request.method != "HEAD":
                    self.wfile.write(body)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _serve

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    server = FakeServer()
    for name, value in support.environment(server.url, tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    yield server
    server.close()


def fault(code: str, status: int, **headers: str) -> Answer:
    return status, dict(headers), f"<Error><Code>{code}</Code></Error>".encode()


# ---- signatures


def expected_signature(request: Request, secret: str, region: str) -> str:
    """As botocore signs the same request at the same moment."""
    names = re.search(r"SignedHeaders=([^,]+)", request.headers["authorization"])[1].split(";")
    again = AWSRequest(
        method=request.method,
        url=f"http://{request.headers['host']}{request.target}",
        headers={name: request.headers[name] for name in names},
        data=request.body,
    )
    again.context["timestamp"] = request.headers["x-amz-date"]
    signer = S3SigV4Auth(Credentials(ACCESS, secret), "s3", region)
    return signer.signature(signer.string_to_sign(again, signer.canonical_request(again)), again)


def assert_signed(request: Request, secret: str = SECRET, region: str = "us-east-1") -> None:
    authorization = request.headers["authorization"]
    found = re.search(r"Signature=([0-9a-f]{64})$", authorization)
    assert found is not None, authorization
    assert found[1] == expected_signature(request, secret, region), request.target
    assert f"Credential={ACCESS}/" in authorization
    assert "x-amz-content-sha256" in authorization
    assert "expect" not in re.search(r"SignedHeaders=([^,]+)", authorization)[1]


@pytest.mark.parametrize("token", ["", "session/token+with=odd"])
@pytest.mark.parametrize("key", ["plain", "a b+c=d", "ü/日本 🎉", "x~y!z*(1)'2'", "%41&?#"])
def test_every_request_is_signed_as_botocore_signs_it(
    fake: FakeServer, monkeypatch: pytest.MonkeyPatch, key: str, token: str
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", token)
    monkeypatch.setenv("AWS_REGION", "eu-central-1")

    def answer(request: Request) -> Answer:
        if request.method == "POST" and request.target.endswith("?uploads="):
            return 200, {}, UPLOAD
        if "list-type" in request.target:
            return 200, {}, b"<ListBucketResult/>"
        return 200, {"ETag": '"x"'}, b""

    fake.answer = answer
    storage = _core.Storage.open("s3://bucket/run", part_bytes=4)
    storage.write(key, b"abc")
    storage.write(key, b"abcdefg")
    storage.put_if_absent(key, b"")
    storage.read(key)
    storage.size(key)
    storage.list("", key)
    storage.remove(key)
    kinds = {(r.method, "?" in r.target) for r in fake.requests}
    assert kinds == {
        ("PUT", False),
        ("PUT", True),
        ("POST", True),
        ("GET", False),
        ("GET", True),
        ("HEAD", False),
        ("DELETE", False),
    }
    for request in fake.requests:
        assert_signed(request, region="eu-central-1")
        assert request.headers.get("x-amz-security-token", "") == token


def test_a_wrong_secret_gives_another_signature(fake: FakeServer) -> None:
    _core.Storage.open("s3://bucket/run").write("x", b"")
    with pytest.raises(AssertionError):
        assert_signed(fake.requests[0], secret="wrong")


# ---- answers that are no success


def test_a_wrong_clock_is_corrected_once(fake: FakeServer) -> None:
    theirs = time.time() + 7200

    def answer(request: Request) -> Answer:
        if request.headers["x-amz-date"] < time.strftime(
            "%Y%m%dT%H%M%SZ", time.gmtime(theirs - 60)
        ):
            return fault(
                "RequestTimeTooSkewed", 403, Date=email.utils.formatdate(theirs, usegmt=True)
            )
        return 200, {}, b""

    fake.answer = answer
    storage = _core.Storage.open("s3://bucket/run")
    storage.write("x", b"1")
    storage.write("y", b"2")
    assert len(fake.requests) == 3
    for request in fake.requests:
        assert_signed(request)


def test_the_region_of_the_bucket_is_found(fake: FakeServer) -> None:
    def answer(request: Request) -> Answer:
        if "/eu-west-3/s3/" not in request.headers["authorization"]:
            return 301, {"x-amz-bucket-region": "eu-west-3"}, b""
        return 200, {}, b""

    fake.answer = answer
    storage = _core.Storage.open("s3://bucket/run")
    storage.size("x")
    storage.size("x")
    assert len(fake.requests) == 3
    assert_signed(fake.requests[2], region="eu-west-3")


@pytest.mark.parametrize(
    ("status", "code", "kind", "text"),
    [
        (403, "InvalidAccessKeyId", SMDebugValueError, "access key that begins with 'AKIA'"),
        (403, "SignatureDoesNotMatch", SMDebugValueError, "AWS_SECRET_ACCESS_KEY"),
        (403, "AccessDenied", SMDebugRuntimeError, "do not allow PUT"),
        (400, "ExpiredToken", SMDebugRuntimeError, "has expired"),
        (404, "NoSuchBucket", SMDebugValueError, "does not create buckets"),
        (403, "RequestTimeTooSkewed", SMDebugRuntimeError, "clock of this machine"),
    ],
)
def test_refusals_are_sentences(
    fake: FakeServer, status: int, code: str, kind: type[Exception], text: str
) -> None:
    fake.answer = lambda request: fault(code, status)
    with pytest.raises(kind, match=text) as raised:
        _core.Storage.open("s3://bucket/run").write("x", b"")
    assert code in str(raised.value) or code == "NoSuchBucket"
    assert SECRET not in str(raised.value)
    assert len(fake.requests) <= 2


def test_what_fails_for_the_moment_is_repeated(fake: FakeServer) -> None:
    fake.answer = lambda r: fault("SlowDown", 503) if len(fake.requests) < 4 else (200, {}, b"")
    storage = _core.Storage.open("s3://bucket/run")
    storage.write("x", b"1")
    assert storage.requests == {"PUT": 4}


def test_a_hook_with_wrong_keys_says_so_at_once(fake: FakeServer) -> None:
    import smdebug

    fake.answer = lambda request: fault("SignatureDoesNotMatch", 403)
    with pytest.raises(SMDebugValueError, match="The secret key does not belong"):
        smdebug.Hook("s3://bucket/run")
    assert len(fake.requests) == 1


# ---- credentials


def test_the_container_gives_credentials(fake: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{fake.url}/creds")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "Basic abc")
    keys = {"AccessKeyId": ACCESS, "SecretAccessKey": SECRET, "Token": "t"}
    keys["Expiration"] = "2099-01-01T00:00:00Z"

    def answer(request: Request) -> Answer:
        return 200, {}, json.dumps(keys).encode() if request.target == "/creds" else b""

    fake.answer = answer
    storage = _core.Storage.open("s3://bucket/run")
    storage.write("x", b"1")
    storage.write("y", b"1")
    assert [r.target for r in fake.requests] == ["/creds", "/bucket/run/x", "/bucket/run/y"]
    assert fake.requests[0].headers["authorization"] == "Basic abc"
    assert fake.requests[1].headers["x-amz-security-token"] == "t"
    assert_signed(fake.requests[2])


def test_botocore_gives_what_nobody_else_has(
    fake: FakeServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(SMDebugValueError, match="No credentials for S3 were found in AWS_ACCESS"):
        _core.Storage.open("s3://bucket/run", botocore_credentials).write("x", b"")
    keys = {"Version": 1, "AccessKeyId": ACCESS, "SecretAccessKey": SECRET}
    (tmp_path / "keys").write_text(json.dumps(keys))
    (tmp_path / "config").write_text(f"[default]\ncredential_process = cat {tmp_path}/keys\n")
    _core.Storage.open("s3://bucket/run", botocore_credentials).write("x", b"")
    assert_signed(fake.requests[0])
    (tmp_path / "config").write_text("[default]\ncredential_process = false\n")
    with pytest.raises(SMDebugValueError, match="Asking botocore for credentials failed"):
        _core.Storage.open("s3://bucket/run", botocore_credentials).write("x", b"")


def test_a_profile_gives_keys_region_and_endpoint(
    fake: FakeServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name)
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_PROFILE", "work")
    (tmp_path / "config").write_text(
        f"[profile work]\nregion = eu-north-1\nendpoint_url = {fake.url}\n"
    )
    (tmp_path / "credentials").write_text(
        f"[work]\naws_access_key_id = {ACCESS}\naws_secret_access_key = {SECRET}\n"
    )
    _core.Storage.open("s3://bucket/run").write("x", b"")
    assert_signed(fake.requests[0], region="eu-north-1")


def test_a_store_that_ignores_conditions_holds_no_packed_runs(fake: FakeServer) -> None:
    import smdebug

    def answer(request: Request) -> Answer:
        if "list-type" in request.target:
            return 200, {}, b"<ListBucketResult/>"
        if request.method in ("GET", "HEAD"):
            return fault("NoSuchKey", 404)
        return 200, {"ETag": '"x"'}, b""

    fake.answer = answer
    with pytest.raises(SMDebugNotImplementedError, match="ignores the conditions"):
        smdebug.Hook("s3://bucket/run", layout="packed")
    smdebug.Hook("s3://bucket/run", layout="original").close()


def test_a_store_without_conditions_holds_no_packed_runs(fake: FakeServer) -> None:
    import smdebug

    def answer(request: Request) -> Answer:
        if "list-type" in request.target:
            return 200, {}, b"<ListBucketResult/>"
        if request.method in ("GET", "HEAD"):
            return fault("NoSuchKey", 404)
        if "if-none-match" in request.headers or "if-match" in request.headers:
            return fault("NotImplemented", 501)
        return 200, {"ETag": '"x"'}, b""

    fake.answer = answer
    with pytest.raises(SMDebugNotImplementedError, match="conditional writes"):
        smdebug.Hook("s3://bucket/run", layout="packed")
