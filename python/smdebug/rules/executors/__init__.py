"""Executors for `run_rules` beyond those of the standard library.

`serial` runs in this thread; `dask` and `ray` run on clusters and need their packages.
"""

from smdebug.rules.executors.serial import SerialExecutor

__all__ = ["SerialExecutor"]
