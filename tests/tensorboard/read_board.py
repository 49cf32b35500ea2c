"""Prints as JSON what the real TensorBoard reads from a directory. Runs in its own environment.

    read_board.py DIR

Each directory below DIR that holds event files is a run, as in TensorBoard.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tensorboard.backend.event_processing import event_accumulator as accumulator


def read_run(folder: Path) -> dict[str, object]:
    """Scalars, histograms and texts of one run, by tag."""
    run = accumulator.EventAccumulator(
        str(folder), size_guidance=accumulator.STORE_EVERYTHING_SIZE_GUIDANCE
    )
    run.Reload()
    tags = run.Tags()
    histograms = {}
    for tag in tags["histograms"]:
        histograms[tag] = [
            {
                "step": event.step,
                "wall_time": event.wall_time,
                "min": event.histogram_value.min,
                "max": event.histogram_value.max,
                "num": event.histogram_value.num,
                "sum": event.histogram_value.sum,
                "sum_squares": event.histogram_value.sum_squares,
                "limits": list(event.histogram_value.bucket_limit),
                "counts": list(event.histogram_value.bucket),
            }
            for event in run.Histograms(tag)
        ]
    return {
        "scalars": {
            tag: [[event.step, event.wall_time, event.value] for event in run.Scalars(tag)]
            for tag in tags["scalars"]
        },
        "histograms": histograms,
        "texts": {
            tag: [
                [event.step, event.tensor_proto.string_val[0].decode()]
                for event in run.Tensors(tag)
            ]
            for tag in tags["tensors"]
            if run.SummaryMetadata(tag).plugin_data.plugin_name == "text"
        },
    }


def main() -> None:
    root = Path(sys.argv[1])
    folders = sorted({path.parent for path in root.rglob("*tfevents*")})
    print(json.dumps({str(folder.relative_to(root)): read_run(folder) for folder in folders}))


if __name__ == "__main__":
    main()
