"""The trees of a round as a table of nodes, read from the JSON that XGBoost dumps."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

COLUMNS = (
    "Tree",
    "Node",
    "ID",
    "Feature",
    "Split",
    "Yes",
    "No",
    "Missing",
    "Gain",
    "Cover",
    "Category",
)
NUMBERS = ("Split", "Gain", "Cover")
NONE = "nan"


def table_of(dumps: list[str], first_tree: int) -> dict[str, Any]:
    """All nodes of the trees, which are numbered from first_tree on, by column.

    ValueError: a dump is not valid JSON, as with quotes in names of features before XGBoost 2.
    """
    rows = [
        row
        for number, dump in enumerate(dumps, first_tree)
        for row in sorted(_rows(number, json.loads(dump)), key=lambda row: row[1])
    ]
    columns: dict[str, Any] = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    types = {"Tree": np.int64, "Node": np.int64, **dict.fromkeys(NUMBERS, np.float64)}
    return {name: np.array(values, types.get(name, np.str_)) for name, values in columns.items()}


def _rows(tree: int, root: dict[str, Any]) -> list[tuple[Any, ...]]:
    rows = []
    pending = [root]
    while pending:
        node = pending.pop()
        pending.extend(node.get("children", ()))
        number = node["nodeid"]
        label = f"{tree}-{number}"
        cover = node.get("cover", np.nan)
        if "leaf" in node:
            leaf = (tree, number, label, "Leaf", np.nan, NONE, NONE, NONE)
            rows.append((*leaf, node["leaf"], cover, NONE))
            continue
        condition = node.get("split_condition", np.nan)
        is_set = isinstance(condition, list)  # of codes of categories
        rows.append(
            (
                tree,
                number,
                label,
                node["split"],
                np.nan if is_set else condition,
                f"{tree}-{node['yes']}",
                f"{tree}-{node['no']}",
                f"{tree}-{node['missing']}" if "missing" in node else NONE,
                node.get("gain", np.nan),
                cover,
                ",".join(map(str, condition)) if is_set else NONE,
            )
        )
    return rows
