"""Which certificates servers of S3 are checked with, against a server whose own nobody knows."""

from __future__ import annotations

import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import s3_server as support
from smdebug import _core
from smdebug.exceptions import SMDebugRuntimeError

# Run by the environment of the test server, which has the package.
MAKE_CERTIFICATE = """
import datetime, ipaddress, sys
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

key = ec.generate_private_key(ec.SECP256R1())
name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "smdebug test")])
now = datetime.datetime.now(datetime.timezone.utc)
day = datetime.timedelta(days=1)
names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
certificate = (
    x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    .serial_number(x509.random_serial_number()).not_valid_before(now - day)
    .not_valid_after(now + day).add_extension(names, critical=False)
    .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    .sign(key, hashes.SHA256())
)
pem = serialization.Encoding.PEM
private = key.private_bytes(
    pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
)
open(sys.argv[1], "wb").write(certificate.public_bytes(pem))
open(sys.argv[2], "wb").write(private)
"""


class Empty(BaseHTTPRequestHandler):
    """Answers every listing with an empty one."""

    def do_GET(self) -> None:
        body = b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("certificate")
    paths = folder / "certificate.pem", folder / "key.pem"
    subprocess.run([support.PYTHON, "-c", MAKE_CERTIFICATE, *paths], check=True)
    return paths


@pytest.fixture
def server(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[ThreadingHTTPServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with ThreadingHTTPServer(("127.0.0.1", 0), Empty) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"https://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
        for name in ("AWS_CA_BUNDLE", "SSL_CERT_FILE"):
            monkeypatch.delenv(name, raising=False)
        yield server
        server.shutdown()


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("name", ["AWS_CA_BUNDLE", "SSL_CERT_FILE"])
def test_a_server_is_trusted_by_the_file_that_is_named(
    name: str, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, str(certificate[0]))
    assert _core.Storage.open("s3://bucket/run").list() == []


@pytest.mark.usefixtures("server")
def test_a_server_that_nobody_vouches_for_is_refused() -> None:
    with pytest.raises(SMDebugRuntimeError, match=r"certificate"):
        _core.Storage.open("s3://bucket/run").list()


@pytest.mark.usefixtures("server")
def test_a_file_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "none.pem"))
    with pytest.raises(SMDebugRuntimeError, match=r"none\.pem"):
        _core.Storage.open("s3://bucket/run").list()
