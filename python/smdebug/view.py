"""The page of a run inside of a notebook: live from a server of this process, or as one file."""

from __future__ import annotations

import atexit
import html
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from smdebug.exceptions import SMDebugRuntimeError

_START_SECS = 60
_REPORT_SECS = 600


def program() -> str:
    """The program `smdebug` that belongs to this package."""
    if chosen := os.environ.get("SMDEBUG_PROGRAM"):
        return chosen
    places = [Path(sysconfig.get_path("scripts")), Path(sys.executable).parent]
    # In a checkout the program is built beside the package.
    places += sorted(Path(__file__).resolve().parents[2].glob("build/*"))
    for place in places:
        if (place / "smdebug").is_file() and os.access(place / "smdebug", os.X_OK):
            return str(place / "smdebug")
    if found := shutil.which("smdebug"):
        return found
    raise SMDebugRuntimeError(
        "The program smdebug is not there; it comes with the package, or SMDEBUG_PROGRAM names it."
    )


class View:
    """What `Trial.view()` gives: notebooks show the page; `address` opens it in a browser.

    `close()` ends the server of a live view; it also ends with the process.
    """

    def __init__(self, path: str, live: bool, height: int) -> None:
        self.path = path
        self.height = height
        self.address: str | None = None
        self._page: str | None = None
        self._server: subprocess.Popen[str] | None = None
        if live:
            self._start()
        else:
            self._page = _report(path)

    def _start(self) -> None:
        self._server = subprocess.Popen(
            [program(), "serve", "--json", "--port", "0", self.path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._server.stdout is not None and self._server.stderr is not None
        line = self._server.stdout.readline()
        if not line:
            self._server.wait(_START_SECS)
            raise SMDebugRuntimeError(self._server.stderr.read().strip())
        self.address = json.loads(line)["address"]
        atexit.register(self.close)

    def close(self) -> None:
        """Ends the server, if there is one."""
        if self._server is None:
            return
        atexit.unregister(self.close)
        self._server.terminate()
        self._server.communicate(timeout=_START_SECS)
        self._server = None
        self.address = None

    def _repr_html_(self) -> str:
        style = f'width="100%" height="{self.height}" style="border: 0"'
        title = f'title="smdebug: {html.escape(self.path)}"'
        if self._page is not None:
            # Scripts run, but with no part in the notebook.
            return (
                f'<iframe sandbox="allow-scripts allow-downloads" {title} {style} '
                f'srcdoc="{html.escape(self._page)}"></iframe>'
            )
        if self.address is None:
            return f"<p>The view of {html.escape(self.path)} was closed.</p>"
        return f'<iframe src="{html.escape(self.address)}" {title} {style}></iframe>'

    def __repr__(self) -> str:
        return f"View({self.path!r}, address={self.address!r})"


def _report(path: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        done = subprocess.run(
            [program(), "report", path, "--html", str(file)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_REPORT_SECS,
            check=False,
        )
        if done.returncode != 0:
            raise SMDebugRuntimeError(done.stderr.strip())
        return file.read_text(encoding="utf-8")
