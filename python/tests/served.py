"""A server of runs for tests, and the questions that tests ask it."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import numpy as np
from recorded import TIMEOUT_SECS

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("SMDEBUG_PROGRAM", ROOT / "build/dev/smdebug"))


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def problem(self) -> str:
        """The sentence of an error."""
        return self.json()["error"]["message"]


class Served:
    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        parts = urlsplit(address)
        self.address = address
        self.host = parts.hostname or ""
        self.port = parts.port or 0

    def get(
        self,
        path: str,
        headers: dict[str, str] | None = None,
        method: str = "GET",
        **parameters: Any,
    ) -> Answer:
        """The answer; parameters may be lists. `from_` stands for `from`."""
        if parameters:
            pairs = {name.rstrip("_"): value for name, value in parameters.items()}
            path += "?" + urlencode(pairs, doseq=True)
        connection = http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT_SECS)
        try:
            connection.request(method, path, headers=headers or {})
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
        names = {name.lower(): value for name, value in response.getheaders()}
        if names.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        return Answer(response.status, names, body)

    def json(self, path: str, **parameters: Any) -> Any:
        answer = self.get(path, **parameters)
        assert answer.status == 200, answer.body
        return answer.json()

    def eventually(self, path: str, wanted: Any, **parameters: Any) -> Any:
        """The answer that `wanted` accepts; fails after a while."""
        deadline = time.monotonic() + TIMEOUT_SECS
        never = threading.Event()
        while True:
            answer = self.json(path, **parameters)
            if wanted(answer):
                return answer
            assert time.monotonic() < deadline, answer
            never.wait(0.02)


@contextmanager
def serving(*words: object) -> Iterator[Served]:
    process = subprocess.Popen(
        [PROGRAM, "serve", "--json", "--port", "0", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        assert line, process.stderr.read()
        yield Served(process, json.loads(line)["address"])
    finally:
        process.terminate()
        process.communicate(timeout=TIMEOUT_SECS)


@dataclass
class HeatMap:
    """The binary of docs/reference/http.md, read from its description."""

    rows: int
    columns: int
    flags: int
    revision: int
    choice: int
    steps: int
    ids: Any
    bounds: Any
    first: Any
    last: Any
    channels: dict[str, Any]
    nonfinite: Any
    extent: tuple[float, float, float]


def heat_map(block: bytes) -> HeatMap:
    magic, version, head, rows, columns, channels, flags, revision = struct.unpack_from(
        "<4sHHIIIIQ", block
    )
    assert (magic, version, head) == (b"SMDH", 1, 64)
    tensors, choice, steps, _ = struct.unpack_from("<IIII", block, 32)
    at = head

    def part(dtype: str, count: int) -> Any:
        nonlocal at
        at = (at + 7) // 8 * 8
        out = np.frombuffer(block, dtype, count, at)
        at += out.nbytes
        return out

    ids = part("<u4", tensors)
    bounds = part("<u4", rows + 1)
    first = part("<i8", columns)
    last = part("<i8", columns)
    names = [name for bit, name in ((1, "mean"), (2, "min"), (4, "max")) if channels & bit]
    grids = {name: part("<f4", rows * columns).reshape(rows, columns) for name in names}
    nonfinite = part("<u2", rows * columns).reshape(rows, columns)
    assert at == len(block)
    return HeatMap(
        rows=rows,
        columns=columns,
        flags=flags,
        revision=revision,
        choice=choice,
        steps=steps,
        ids=ids,
        bounds=bounds,
        first=first,
        last=last,
        channels=grids,
        nonfinite=nonfinite,
        extent=struct.unpack_from("<fff", block, 48),
    )


class Events:
    """Listens to a server's events on a connection of its own."""

    def __init__(self, served: Served, path: str = "/api/events") -> None:
        self._connection = http.client.HTTPConnection(
            served.host, served.port, timeout=TIMEOUT_SECS
        )
        self._connection.request("GET", path)
        self.response = self._connection.getresponse()

    def __enter__(self) -> Events:
        return self

    def __exit__(self, *_: object) -> None:
        self.response.close()
        self._connection.close()

    def next(self, name: str | None = None, wanted: Any = None) -> dict[str, Any]:
        """The data of the next event with this name that `wanted` accepts."""
        event = ""
        while True:
            line = self.response.readline()
            assert line, "the stream has ended"
            text = line.decode().rstrip("\n")
            if text.startswith("event: "):
                event = text.removeprefix("event: ")
            elif text.startswith("data: ") and name in (None, event):
                data = json.loads(text.removeprefix("data: "))
                if wanted is None or wanted(data):
                    return data
