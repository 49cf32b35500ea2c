"""The guide to object storage is true."""

from __future__ import annotations

from pathlib import Path

import s3_server as support
from markdown_examples import ROOT, check_examples


def test_the_examples_of_the_guide_print_what_is_shown(
    s3: str, s3_server: support.Server, tmp_path: Path
) -> None:
    s3_server.make_bucket("my-bucket")
    check_examples(ROOT / "docs/guide/object-storage.md", tmp_path)
