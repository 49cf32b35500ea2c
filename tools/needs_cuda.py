#!/usr/bin/env python3
"""Ends with one sentence where this Python has no CUDA device, PyTorch, smdebug, or a module that is named.

tools/needs_cuda.py pytest
"""

from __future__ import annotations

import importlib
import sys


def complaint(modules: list[str]) -> str:
    """What is missing; nothing if all is there."""
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError as error:
            return f"{sys.executable} cannot import {name}: {error}"
    import torch

    if torch.cuda.is_available():
        return ""
    return f"PyTorch {torch.__version__} of {sys.executable} finds no CUDA device"


def main() -> int:
    modules = ["torch", *sys.argv[1:], "smdebug"]
    found = complaint(modules)
    if not found:
        return 0
    print(f"{found}. This needs a CUDA device, and a python3 with {', '.join(modules)}.")
    return 1


if __name__ == "__main__":
    sys.exit(main())
