#!/usr/bin/env python3
"""Makes docs/images/tensorboard.png: a run of ours in the real TensorBoard, seen by Chromium.

    tools/board_picture.py [FILE]

Needs a build, .venvs/tensorboard (tools/venv.sh tensorboard) and the program chromium.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "tensorboard")]

import boards  # noqa: E402
import smdebug  # noqa: E402

STEPS = 40
WIDTH, HEIGHT = 1280, 800
# Virtual time that the page gets before the picture is taken.
BUDGET_MS = 60_000


def record(out_dir: Path) -> None:
    """Weights that spread, and gradients that vanish."""
    random = np.random.default_rng(1)
    with smdebug.Hook(
        out_dir=str(out_dir),
        tensorboard_dir=str(out_dir / "tensorboard"),
        include_collections=["weights", "gradients"],
        save_config=smdebug.SaveConfig(save_interval=1),
    ) as hook:
        hook.set_mode(smdebug.modes.TRAIN)
        for step in range(STEPS):
            hook.step()
            for layer in ("conv1", "fc"):
                weight = random.normal(loc=step / STEPS, scale=0.3 + step / STEPS, size=20_000)
                hook.save(f"{layer}/weight", weight.astype(np.float32))
                gradient = random.normal(scale=0.9**step, size=20_000)
                hook.save(f"gradient/{layer}/weight", gradient.astype(np.float32))
            hook.save_scalar("loss", float(np.exp(-step / 10)))


def main() -> None:
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs/images/tensorboard.png")
    browser = shutil.which("chromium")
    if browser is None:
        sys.exit("board_picture: the program chromium is needed: apt-get install chromium")
    target = target.resolve()
    run = Path("runs/first")  # shown on the page
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        record(run)
        with boards.serve(run / "tensorboard") as server:
            boards.wait_for(
                lambda: server.get("plugin/histograms/tags"),
                lambda tags: len(tags.get("TRAIN", ())) == 4,
            )
            subprocess.run(
                [
                    browser,
                    "--headless",
                    "--no-sandbox",
                    "--disable-gpu",
                    f"--user-data-dir={folder}/browser",
                    f"--window-size={WIDTH},{HEIGHT}",
                    f"--virtual-time-budget={BUDGET_MS}",
                    f"--screenshot={target}",
                    f"{server.address}?darkMode=false#histograms",
                ],
                check=True,
                stderr=subprocess.DEVNULL,
            )
    print(f"board_picture: wrote {target}")


if __name__ == "__main__":
    main()
