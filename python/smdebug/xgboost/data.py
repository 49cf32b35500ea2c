"""The data that a hook looks at: a DMatrix, or a file that is loaded when it is needed."""

from __future__ import annotations

import os
import warnings
from difflib import get_close_matches
from typing import Any

import xgboost

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError

CSV = ("csv", "text/csv")
LIBSVM = ("libsvm", "text/libsvm", "text/x-libsvm")


def check(value: Any, name: str) -> Any:
    """The data, if a hook can use it."""
    if value is None or isinstance(value, xgboost.DMatrix):
        return value
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise SMDebugTypeError(
            f"{name} must be a DMatrix, or a path and a content type such as "
            f"('train.csv', 'text/csv'), not {type(value).__name__}."
        )
    path, content_type = os.fspath(value[0]), value[1]
    known = (*CSV, *LIBSVM)
    kind = content_type.partition(";")[0].strip() if isinstance(content_type, str) else content_type
    if kind not in known:
        near = get_close_matches(str(kind), known, 1, 0.4)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise SMDebugValueError(
            f"{name} has the content type {content_type!r}; there are {', '.join(known)}.{hint}"
        )
    if not os.path.exists(path):
        raise SMDebugValueError(f"There is no file for {name}: {path}")
    return path, kind


def load(value: Any) -> Any:
    """The data as a DMatrix. In a csv file, the first column holds the labels."""
    if value is None or isinstance(value, xgboost.DMatrix):
        return value
    path, kind = value
    query = "?format=csv&label_column=0" if kind in CSV else "?format=libsvm"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # XGBoost would like another way of loading text
        return xgboost.DMatrix(path + query)


def first_rows(data: Any, count: int | None) -> Any:
    """The first rows; all of them if the kind of matrix cannot be cut."""
    if count is None or count >= data.num_row():
        return data
    try:
        return data.slice(list(range(count)))
    except (TypeError, NotImplementedError, xgboost.core.XGBoostError):
        return data
