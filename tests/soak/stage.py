"""Who takes part in a soak: four recorders, four readers, rules, servers and their visitors."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import s3_server
from crew import Member, cpu_token, output_token, told_size

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAM = Path(os.environ.get("SMDEBUG_PROGRAM", ROOT / "build/dev/smdebug"))
NODE = ROOT / "tools/node.sh"
STEPS_PER_CYCLE = 120
RECENT_STEPS = 200


@dataclass(frozen=True)
class Recording:
    """A run that a recorder makes, and what its values are made of."""

    name: str
    number: int
    uri: str


class Stage:
    """The members by their roles, and the folders that they share."""

    def __init__(
        self, folder: Path, store: s3_server.Server, seed: int, with_browser: bool
    ) -> None:
        self.folder = folder
        self.runs = folder / "runs"
        self.ledgers = folder / "ledgers"
        for path in (self.runs, self.ledgers):
            path.mkdir()
        self.bucket = store.make_bucket(f"soak-{seed}")
        self.environment = {
            **s3_server.environment(store.url, folder),
            "SMDEBUG_SEGMENT_SECS": "2",
            "SMDEBUG_STRICT": "1",
            "SMDEBUG_LOG_LEVEL": "warning",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        self.recordings = [
            Recording("original", 0, str(self.runs / "original")),
            Recording("packed", 1, str(self.runs / "packed")),
            Recording("store", 2, f"s3://{self.bucket}/store"),
        ]
        self.cycle = Recording("cycle", 3, str(self.runs / "cycle"))
        self.ports = {"server": s3_server.free_port(), "server-steady": s3_server.free_port()}
        self.recorders = self._recorders()
        self.readers = self._readers()
        self.servers = [self._server(name) for name in self.ports]
        self.visitors = [self._visitor(name, seed) for name in self.ports]
        if with_browser:
            self.visitors.append(self._tab("server-steady"))

    @property
    def members(self) -> list[Member]:
        return [*self.recorders, *self.readers, *self.servers, *self.visitors]

    def member(self, name: str) -> Member:
        return next(member for member in self.members if member.name == name)

    def ledger(self, recording: Recording) -> Path:
        return self.ledgers / f"{recording.name}.jsonl"

    def failures(self, server: str) -> Path:
        """Where the visitors of a server write what failed."""
        return self.folder / f"{server}.failures"

    def _python(self, name: str, script: str, *words: object, is_spared: bool = False) -> Member:
        command = [sys.executable, str(HERE / script), *map(str, words)]
        return Member(name, command, self.folder, is_spared=is_spared, environment=self.environment)

    def _heartbeat(self, name: str) -> Path:
        return self.folder / f"{name}.heartbeat"

    def _recorders(self) -> list[Member]:
        layouts = {
            "original": ["--layout", "original"],
            "packed": ["--layout", "packed", "--rules"],
            "store": ["--layout", "packed", "--pause-secs", "0.3"],
            "cycle": ["--layout", "original", "--durable", "--steps-per-run", STEPS_PER_CYCLE],
        }
        return [
            self._python(
                f"recorder-{recording.name}",
                "recorder.py",
                recording.uri,
                self.ledger(recording),
                self._heartbeat(f"recorder-{recording.name}"),
                "--number",
                recording.number,
                *layouts[recording.name],
                is_spared=recording.name == "packed",
            )
            for recording in [*self.recordings, self.cycle]
        ]

    def _readers(self) -> list[Member]:
        following = [
            self._python(
                f"reader-{recording.name}",
                "reader.py",
                recording.uri,
                self._heartbeat(f"reader-{recording.name}"),
                "--number",
                recording.number,
                *(["--recent", RECENT_STEPS] if recording.name == "store" else []),
                is_spared=recording.name == "original",
            )
            for recording in self.recordings
        ]
        original, packed, _ = self.recordings
        tail = ["tail", "--json", "--from", "0", "--exit-with-job", packed.uri]
        watch = ["watch", "--json", "--on-fire", "continue", "--interval", "1", original.uri]
        return [
            *following,
            self._command("tail", tail, output_token),
            self._command("watch", watch),
        ]

    def _command(self, name: str, words: list[str], token=cpu_token, is_spared=False) -> Member:  # type: ignore[no-untyped-def]
        return Member(
            name,
            [str(PROGRAM), *words],
            self.folder,
            token=token,
            is_spared=is_spared,
            environment=self.environment,
        )

    def _server(self, name: str) -> Member:
        words = ["serve", "--port", str(self.ports[name]), str(self.runs), self.recordings[2].uri]
        return self._command(name, words, is_spared=name == "server-steady")

    def _visitor(self, server: str, seed: int) -> Member:
        name = f"visitor-of-{server}"
        return self._python(
            name,
            "visitor.py",
            self.ports[server],
            self._heartbeat(name),
            self.failures(server),
            "--seed",
            seed,
            is_spared=server == "server-steady",
        )

    def _tab(self, server: str) -> Member:
        name = f"tab-of-{server}"
        address = f"http://127.0.0.1:{self.ports[server]}/"
        words = [
            str(HERE / "tab.mjs"),
            address,
            str(self._heartbeat(name)),
            str(self.failures(server)),
        ]
        return Member(
            name,
            [str(NODE), str(ROOT / "tests/browser"), "node", *words],
            self.folder,
            measure=told_size,
            is_spared=True,
        )
