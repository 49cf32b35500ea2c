"""Activates smdebug in every Python process below `smdebug run`, which puts this folder on PYTHONPATH.

Then the sitecustomize runs that would have run without us, and the folder leaves sys.path.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _activate() -> None:
    package = os.path.dirname(os.path.dirname(os.path.dirname(_HERE)))
    sys.path.insert(0, package)
    try:
        import smdebug_activation
    finally:
        sys.path.remove(package)
    smdebug_activation.activate()


def _run_next() -> None:
    """The sitecustomize behind this one takes its place; without one, this one stays."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
    this = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        if this is not None:
            sys.modules.setdefault("sitecustomize", this)


try:
    _activate()
except Exception as error:
    sys.stderr.write(f"smdebug: nothing is recorded, training goes on. {error!r}\n")
_run_next()
