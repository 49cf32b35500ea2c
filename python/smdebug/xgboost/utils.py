"""Where old scripts look for functions about models of XGBoost; ours are in `trees`."""

from __future__ import annotations

from typing import Any

from smdebug.xgboost import trees


def parse_tree_model(booster: Any, iteration: int, fmap: str = "") -> dict[str, Any]:
    """The nodes of the trees of an iteration, by column."""
    part = booster[iteration : iteration + 1]
    dumps = part.get_dump(fmap=fmap, dump_format="json", with_stats=True)
    return trees.table_of(dumps, iteration * len(dumps))


def is_xgb_1_5_and_later() -> bool:
    """Always: older versions are not supported."""
    return True


__all__ = ["is_xgb_1_5_and_later", "parse_tree_model"]
