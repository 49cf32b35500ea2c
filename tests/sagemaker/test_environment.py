"""Every environment variable of the documentation has an effect, in a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from container import ROOT
from smdebug import cli

PAGE = (ROOT / "docs/reference/environment.md").read_text(encoding="utf-8")

HOOK = "import smdebug; hook = smdebug.Hook('run', save_config={'save_interval': 1})\n"
METRIC = HOOK + (
    "hook.step(); hook.save_scalar('x', 1, sm_metric=True); hook.close()\n"
    "import glob; print(*[path.rpartition('/')[0] or '.' for path in glob.glob('**/[0-9]*.json', "
    "recursive=True) if 'worker' not in path])\n"
)
WORKER = HOOK + "hook.step(); print(hook.worker); hook.close()\n"
LOG = (
    "import sys; from smdebug.logger import get_logger; log = get_logger()\n"
    "log.debug('a debug'); log.warning('a warning'); log.error('an error')\n"
)
# A run whose second worker never shows up.
LAGGING = """
import sys; sys.path.insert(0, sys.argv[1])
from pathlib import Path
import smdebug, writing
for worker in range(2):
    writing.collections(Path('run'), f'worker_{worker}', 2)
for step in range(8):
    writing.step(Path('run'), step, 'worker_0')
print(smdebug.create_trial('run').steps())
"""
# A step that arrives after the end marker.
LATE = """
import sys; sys.path.insert(0, sys.argv[1])
import threading
from pathlib import Path
import smdebug, writing
run = Path('run')
writing.collections(run); writing.step(run, 0)
trial = smdebug.create_trial('run')
writing.end(run)
late = threading.Timer(0.05, writing.step, [run, 1])
late.start() if {early} else None
trial.steps()
late.run() if not {early} else late.join()
print(trial.steps())
"""
LOST_FILE = """
import sys; sys.path.insert(0, sys.argv[1])
import shutil
from pathlib import Path
import smdebug, smdebug.tensor, writing
writing.collections(Path('run')); writing.step(Path('run'), 0)
shutil.rmtree('run/events')
smdebug.tensor._MISSING_FILE_WAIT_SECS = 0.0
trial = smdebug.create_trial('run')
looks, core = [], trial._core
class Counting:
    def __getattr__(self, name):
        looks.append(1) if name == 'wait' else None
        return getattr(core, name)
trial._core = Counting()
try:
    trial.tensor('w').value(0)
except smdebug.exceptions.TensorUnavailableForStep:
    print(len(looks))
"""
# What a server is told about the region.
REGION = """
import http.server, os, threading
regions = set()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        regions.add(self.headers['Authorization'].split('/')[2])
        self.send_response(404); self.send_header('Content-Length', '0'); self.end_headers()
    def log_message(self, *args): pass
server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
os.environ.update(AWS_ENDPOINT_URL=f'http://127.0.0.1:{server.server_port}',
                  AWS_ACCESS_KEY_ID='a', AWS_SECRET_ACCESS_KEY='b')
from smdebug import _core
try:
    _core.Storage.open('s3://bucket/x').read('y')
except Exception as error:
    pass
print(*regions)
"""
SIGNAL = """
import time
from smdebug.core.access_layer import utils
import os; os.makedirs('run', exist_ok=True)
open('run/stop', 'w').write(str(time.time() - 100))
print(utils.is_rule_signalled_gracetime_passed('run'))
"""


@dataclass
class Effect:
    """A script, and what it prints without the variable and with it."""

    value: str
    script: str
    without: str
    given: str
    others: dict[str, str] = field(default_factory=dict)
    stream: str = "stdout"


JOB = {"TRAINING_JOB_NAME": "job"}
EFFECTS = {
    "USE_SMDEBUG": Effect("0", HOOK + "print(smdebug.get_hook() is hook)", "True", "False"),
    "SMDEBUG_CONFIG_FILE_PATH": Effect(
        "hook.json",
        "import smdebug\nhook = smdebug.get_hook(create_if_not_exists=True)\n"
        "print(hook and hook.out_dir)",
        "None",
        "named",
    ),
    "TENSORBOARD_CONFIG_FILE_PATH": Effect(
        "tensorboard.json", HOOK + "print(hook.tensorboard_dir)", "None", "/my/tensorboard/path"
    ),
    "CHECKPOINT_CONFIG_FILE_PATH": Effect(
        "checkpoint.json", HOOK + "print(hook.step, hook.training_run)", "-1 0", "19 1"
    ),
    "SAGEMAKER_METRICS_DIRECTORY": Effect("metrics", METRIC, ".", "metrics", JOB),
    "TRAINING_JOB_NAME": Effect(
        "",
        HOOK + "hook.close(); import os; print(os.path.exists('run/training_job_end.ts'))",
        "True",
        "False",
    ),
    "SMDEBUG_LAYOUT": Effect(
        "packed",
        HOOK + "hook.step(); hook.save_scalar('x', 1); hook.close()\n"
        "import os; print(os.path.isdir('run/v2'))",
        "False",
        "True",
    ),
    "SMDEBUG_STRICT": Effect(
        "1",
        "open('run', 'w').close()\n" + HOOK + "hook.step(); hook.save_scalar('x', 1)\n"
        "try:\n    hook.close(); print('went on')\nexcept RuntimeError:\n    print('raised')",
        "went on",
        "raised",
    ),
    "RANK": Effect("1", WORKER, "worker_0", "worker_1", {"WORLD_SIZE": "2"}),
    "WORLD_SIZE": Effect("2", WORKER, "worker_0", "worker_1", {"RANK": "1"}),
    "OMPI_COMM_WORLD_RANK": Effect(
        "1", WORKER, "worker_0", "worker_1", {"OMPI_COMM_WORLD_SIZE": "2"}
    ),
    "OMPI_COMM_WORLD_SIZE": Effect(
        "2", WORKER, "worker_0", "worker_1", {"OMPI_COMM_WORLD_RANK": "1"}
    ),
    "PMI_RANK": Effect("1", WORKER, "worker_0", "worker_1", {"PMI_SIZE": "2"}),
    "PMI_SIZE": Effect("2", WORKER, "worker_0", "worker_1", {"PMI_RANK": "1"}),
    "SLURM_PROCID": Effect("1", WORKER, "worker_0", "worker_1", {"SLURM_NTASKS": "2"}),
    "SLURM_NTASKS": Effect("2", WORKER, "worker_0", "worker_1", {"SLURM_PROCID": "1"}),
    "SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT": Effect("3", LOST_FILE, "100", "3"),
    "MISSING_EVENT_FILE_RETRY_LIMIT": Effect("3", LOST_FILE, "100", "3"),
    "SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW": Effect("4", LAGGING, "[]", "[0, 1, 2, 3]"),
    "INCOMPLETE_STEP_WAIT_WINDOW": Effect("4", LAGGING, "[]", "[0, 1, 2, 3]"),
    "SMDEBUG_TRAINING_END_DELAY_REFRESH": Effect("0", LATE, "[0, 1]", "[0]"),
    "TRAINING_END_DELAY_REFRESH": Effect("0", LATE, "[0, 1]", "[0]"),
    "AWS_REGION": Effect("eu-north-1", REGION, "us-east-1", "eu-north-1"),
    "AWS_DEFAULT_REGION": Effect("eu-north-1", REGION, "us-east-1", "eu-north-1"),
    "SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE": Effect("stop", SIGNAL, "False", "True"),
    "rule_stop_grace_time_secs": Effect(
        "1000", SIGNAL, "True", "False", {"SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE": "stop"}
    ),
}
LOG_EFFECTS = {
    "SMDEBUG_LOG_LEVEL": Effect("debug", LOG, r"(?!.*a debug).*a warning", r".*a debug"),
    "SMDEBUG_LOG_CONTEXT": Effect("here I am", LOG, r"(?!.*here I am)", r".*here I am WARNING"),
    "SMDEBUG_LOG_ALL_TO_STDOUT": Effect(
        "false", LOG, r"$", r"(?!.*a warning).*an error", stream="stderr"
    ),
    "SMDEBUG_LOG_PATH": Effect(
        "log/file",
        LOG + "import os; print(os.path.exists('log/file') and open('log/file').read())",
        r".*False$",
        r".*an error.*an error",
    ),
}
# Shown with their effect in tests of their own: python/tests/test_s3_*.py.
ELSEWHERE = {
    "SMDEBUG_SPOOL_DIR",
    "SMDEBUG_SPOOL_DRAIN_SECS",
    "SMDEBUG_SPOOL_MAX_BYTES",
    "AWS_PROFILE",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_CA_BUNDLE",
    "SSL_CERT_FILE",
}


def run(
    effect: Effect,
    variables: dict[str, str],
    folder: Path,
    environment: dict[str, str],
    python: str,
) -> str:
    """What the script prints in a new folder with the files of a job."""
    folder.mkdir()
    (folder / "hook.json").write_text('{"LocalPath": "named"}')
    (folder / "tensorboard.json").write_text('{ "LocalPath": "/my/tensorboard/path" }')
    (folder / "checkpoint.json").write_text(json.dumps({"LocalPath": str(folder / "checkpoints")}))
    (folder / "checkpoints").mkdir()
    state = {"training-run": 0, "latest-global-step-seen": 19, "latest-mode-step": {"TRAIN": 9}}
    (folder / "checkpoints/metadata.json").write_text(json.dumps([state]))
    clean = {k: v for k, v in environment.items() if not k.startswith(("SMDEBUG_", "AWS_"))}
    quiet = {} if effect.script.startswith(LOG) else {"SMDEBUG_LOG_LEVEL": "off"}
    script = effect.script
    if script is LATE:
        script = LATE.format(early=not variables)
    done = subprocess.run(
        [python, "-c", script, str(ROOT / "python/tests")],
        env={**clean, **quiet, **effect.others, **variables},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return getattr(done, effect.stream).strip()


@pytest.mark.parametrize("name", EFFECTS)
def test_a_variable_changes_what_happens(
    name: str, tmp_path: Path, child_environment: dict[str, str], python: str
) -> None:
    effect = EFFECTS[name]
    assert run(effect, {}, tmp_path / "a", child_environment, python) == effect.without
    given = {name: effect.value}
    assert run(effect, given, tmp_path / "b", child_environment, python) == effect.given


@pytest.mark.parametrize("name", LOG_EFFECTS)
def test_a_variable_changes_what_is_logged(
    name: str, tmp_path: Path, child_environment: dict[str, str], python: str
) -> None:
    effect = LOG_EFFECTS[name]
    before = run(effect, {}, tmp_path / "a", child_environment, python)
    assert re.match(effect.without, before, re.DOTALL), before
    after = run(effect, {name: effect.value}, tmp_path / "b", child_environment, python)
    assert re.match(effect.given, after, re.DOTALL), after


def test_the_program_and_the_page_know_the_same_variables() -> None:
    shown = set(cli.VARIABLES)
    assert shown == {*EFFECTS, *LOG_EFFECTS, *ELSEWHERE}
    for name in shown:
        assert f"`{name}`" in PAGE or f"`{name.removeprefix('SMDEBUG_')}`" in PAGE, name


def test_the_program_shows_what_is_set_but_no_secrets(
    child_environment: dict[str, str], python: str
) -> None:
    given = {"SMDEBUG_LAYOUT": "packed", "AWS_SECRET_ACCESS_KEY": "hidden"}
    done = subprocess.run(
        [python, "-m", "smdebug.cli", "environment", "--json"],
        env=child_environment | given,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert json.loads(done.stdout)["variables"]["SMDEBUG_LAYOUT"] == "packed"
    assert "hidden" not in done.stdout
