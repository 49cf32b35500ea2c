"""Clients of a server of runs: each asks what the page asks, again and again.

One thread, one connection for each client. Half of the clients also listen to events.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

QUESTIONS = (
    "/",
    "/api/runs",
    "/api/runs/{run}",
    "/api/runs/{run}/tensors",
    "/api/runs/{run}/heatmap?statistic=l2&role=gradient&rows=200&columns=500&channels=mean,min,max",
    "/api/runs/{run}/metrics",
    "/api/runs/{run}/findings",
    "/api/runs/{run}/series?id=0&points=400",
)


@dataclass
class Tally:
    """What all clients have seen."""

    seconds: list[float] = field(default_factory=list)
    bytes: int = 0
    events: int = 0
    errors: list[str] = field(default_factory=list)

    def at(self, share: float) -> float:
        """The time that this share of the answers took at most."""
        ordered = sorted(self.seconds)
        return ordered[int(share * (len(ordered) - 1))] if ordered else 0.0


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    """Status, headers in lower case, and body."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])
    }
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return int(head[0].split()[1]), headers, body


async def ask(number: int, port: int, run: str, end: float, pause: float, tally: Tally) -> None:
    """One client: asks until the end, with pauses, on one connection."""
    tags: dict[str, str] = {}
    try:
        await asyncio.sleep(pause * (number % 100) / 100)
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        turn = number
        while time.monotonic() < end:
            path = QUESTIONS[turn % len(QUESTIONS)].format(run=run)
            turn += 1
            begin = time.monotonic()
            known = f"If-None-Match: {tags[path]}\r\n" if path in tags else ""
            writer.write(
                f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n{known}\r\n".encode()
            )
            status, headers, body = await read_answer(reader)
            tally.seconds.append(time.monotonic() - begin)
            tally.bytes += len(body)
            if status not in (200, 304):
                tally.errors.append(f"{status} for {path}: {body[:200]!r}")
            tags[path] = headers.get("etag", "")
            if not tags[path]:
                del tags[path]
            await asyncio.sleep(pause)
        writer.close()
    except (OSError, EOFError, asyncio.LimitOverrunError) as error:
        tally.errors.append(f"client {number}: {error!r}")


async def listen(number: int, port: int, end: float, tally: Tally) -> None:
    """One listener: counts events until the end."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        while (left := end - time.monotonic()) > 0:
            try:
                line = await asyncio.wait_for(reader.readline(), left)
            except TimeoutError:
                break
            if not line:
                tally.errors.append(f"listener {number}: the stream has ended")
                break
            tally.events += line.startswith(b"event:")
        writer.close()
    except OSError as error:
        tally.errors.append(f"listener {number}: {error!r}")


def besiege(port: int, run: str, clients: int, seconds: float, pause: float) -> Tally:
    """Lets so many clients ask for so long."""
    tally = Tally()
    end = time.monotonic() + seconds

    async def all_of_them() -> None:
        asking = [ask(i, port, run, end, pause, tally) for i in range(clients)]
        await asyncio.gather(*asking, *(listen(i, port, end, tally) for i in range(clients // 2)))

    asyncio.run(all_of_them())
    return tally
