"""Files by which a run and those who watch it talk: who trains, and what is asked of them.

They lie in `control.smd/` of the run's directory, each one JSON object that appears whole:

| file | written by | holds |
|---|---|---|
| `process_<rank>.json` | the training process, when it starts | the fields of `RunRecord` |
| `stop.json` | the action StopTraining | `rule`, `step`, `message`, `time` |
| `save_now.json` | the action SaveNow | the same, and `collections`, `steps` |
| `checkpoint.json` | the action Checkpoint | the same as `stop.json` |

`time` is in seconds since 1970. A request that is older than the process which finds it was meant
for an earlier one; a new request of the same kind replaces the one before. Readers ignore fields
that they do not know, and files whose `version` is greater than 1.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smdebug.exceptions import SMDebugValueError, TrainingStopRequested
from smdebug.logger import get_logger

FOLDER = "control.smd"
REQUESTS = ("stop", "save_now", "checkpoint")
_VERSION = 1
_news = threading.Condition()
_answered: set[str] = set()  # runs; guarded by _news
_MOST_BYTES = 1 << 20  # of a file that is read: it may be anybody's


@dataclass(frozen=True)
class RunRecord:
    """One process of a training job, described so that it cannot be taken for another one."""

    run: str  # the job's name
    host: str
    boot_id: str  # of the kernel: process numbers and start times begin anew with it
    pid: int
    start_ticks: int  # when the process started, in the kernel's ticks after boot
    uid: int
    command: tuple[str, ...]
    rank: int
    world_size: int
    started: float  # when the record was written, in seconds since 1970

    @classmethod
    def of_this_process(
        cls, out_dir: str | os.PathLike[str], rank: int | None = None, world_size: int | None = None
    ) -> RunRecord:
        """This process as the one that trains into `out_dir`."""
        path = os.path.abspath(os.path.expanduser(os.fspath(out_dir)))
        return cls(
            run=os.environ.get("TRAINING_JOB_NAME") or os.path.basename(path),
            host=socket.gethostname(),
            boot_id=_boot_id(),
            pid=os.getpid(),
            start_ticks=start_ticks(os.getpid()) or 0,
            uid=os.geteuid(),
            command=tuple(sys.orig_argv),
            rank=_from_launcher("RANK", 0) if rank is None else rank,
            world_size=_from_launcher("WORLD_SIZE", 1) if world_size is None else world_size,
            started=time.time(),
        )

    @property
    def is_of_this_host(self) -> bool:
        """Whether the process was started on this machine since it booted."""
        return self.host == socket.gethostname() and self.boot_id == _boot_id()

    @property
    def is_running(self) -> bool:
        """Whether this very process still runs, on this host and as our user."""
        if not self.is_of_this_host or self.pid <= 1 or self.start_ticks <= 0:
            return False
        if start_ticks(self.pid) != self.start_ticks:
            return False
        try:
            owner = os.stat(f"/proc/{self.pid}").st_uid
        except OSError:
            return False
        return owner == self.uid == os.geteuid()


def start_ticks(pid: int) -> int | None:
    """When a process started, in the kernel's ticks after boot; None if it does not run."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        fields = text[text.rindex(")") + 1 :].split()  # the name before may hold anything
        return None if fields[0] in "ZX" else int(fields[19])
    except (OSError, ValueError, IndexError):
        return None


def announce(
    out_dir: str | os.PathLike[str], rank: int | None = None, world_size: int | None = None
) -> RunRecord:
    """Writes the record of this process, so that it can be stopped; the training's side.

    `rank` and `world_size` come from the variables RANK and WORLD_SIZE, if they are not given.
    """
    record = RunRecord.of_this_process(out_dir, rank, world_size)
    with _news:
        _answered.discard(os.path.abspath(out_dir))
    _write(out_dir, f"process_{record.rank}.json", dataclasses.asdict(record))
    return record


def records(run: str | os.PathLike[str]) -> list[RunRecord]:
    """The processes that said they train this run, by rank; what cannot be read is skipped."""
    found = []
    for path in Path(run, FOLDER).glob("process_*.json"):
        fields = _read(path)
        if fields is None:
            continue
        try:
            found.append(_record(fields))
        except (KeyError, TypeError, ValueError):
            get_logger().warning(f"This file does not describe a process of a run: {path}")
    return sorted(found, key=lambda record: (record.rank, record.host, record.pid))


def runs_under(root: str | os.PathLike[str], depth: int = 3) -> Iterator[Path]:
    """The runs in a folder and in the folders inside of it that have records, sorted by path."""
    folder = Path(root)
    if (folder / FOLDER).is_dir():
        yield folder
        return
    if depth <= 0:
        return
    with contextlib.suppress(OSError):
        inner = sorted(p for p in folder.iterdir() if p.is_dir() and not p.is_symlink())
        for path in inner:
            yield from runs_under(path, depth - 1)


def ask(run: str | os.PathLike[str], request: str, **fields: Any) -> None:
    """Leaves a request for the processes of a run: the watcher's side."""
    _check_request(request)
    _write(run, f"{request}.json", {**fields, "time": time.time()})


def asked(run: str | os.PathLike[str], request: str, since: float = 0.0) -> dict[str, Any] | None:
    """The request of this kind that was left after `since`; None if there is none."""
    _check_request(request)
    fields = _read(Path(run, FOLDER, f"{request}.json"))
    at = None if fields is None else fields.get("time")
    if not isinstance(at, int | float) or at < since:
        return None
    return fields


def raise_if_asked_to_stop(record: RunRecord, out_dir: str | os.PathLike[str]) -> None:
    """Raises TrainingStopRequested if a stop was asked for since the process was announced."""
    fields = asked(out_dir, "stop", record.started)
    if fields is not None:
        raise TrainingStopRequested(
            str(fields.get("rule", "")), int(fields.get("step", -1)), str(fields.get("message", ""))
        )


def note_answer(run: str | os.PathLike[str]) -> None:
    """This process has heard that it is to stop, or will not hear of it any more."""
    with _news:
        _answered.add(os.path.abspath(run))
        _news.notify_all()


def is_answered(run: str | os.PathLike[str], timeout_secs: float = 0.0) -> bool:
    """Whether this process has heard, within this time, that it is to stop."""
    with _news:
        return _news.wait_for(lambda: os.path.abspath(run) in _answered, timeout_secs)


def _check_request(request: str) -> None:
    if request not in REQUESTS:
        raise SMDebugValueError(
            f"There is no request {request!r}; there are {', '.join(REQUESTS)}."
        )


def _record(fields: dict[str, Any]) -> RunRecord:
    known = {field.name for field in dataclasses.fields(RunRecord)}
    taken = {name: value for name, value in fields.items() if name in known}
    record = RunRecord(**{**taken, "command": tuple(taken["command"])})
    numbers = (record.pid, record.start_ticks, record.uid, record.rank, record.world_size)
    texts = (record.run, record.host, record.boot_id)
    if not all(type(number) is int for number in numbers) or not all(
        isinstance(text, str) for text in texts
    ):
        raise ValueError("a field has the wrong type")
    return record


def _write(run: str | os.PathLike[str], name: str, fields: dict[str, Any]) -> None:
    folder = Path(run, FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"version": _VERSION, **fields}, file)
        os.chmod(temporary, 0o644)  # whoever may read the run may read this, too
        os.replace(temporary, folder / name)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _read(path: Path) -> dict[str, Any] | None:
    try:
        with path.open("rb") as file:
            fields = json.loads(file.read(_MOST_BYTES))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        get_logger().warning(f"A control file cannot be read. {error}: {path}")
        return None
    version = fields.get("version") if isinstance(fields, dict) else None
    return fields if isinstance(version, int) and 1 <= version <= _VERSION else None


def _from_launcher(variable: str, default: int) -> int:
    value = os.environ.get(variable, "").strip()
    if value and not value.isdecimal():
        raise SMDebugValueError(f"{variable} must be a number, not {value!r}.")
    return int(value) if value else default


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
