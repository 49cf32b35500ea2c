"""The examples of the guide run with the real tools."""

from markdown_examples import ROOT, check_examples


def test_the_examples_of_the_guide_print_what_is_shown(tmp_path):
    check_examples(ROOT / "docs/guide/exporters.md", tmp_path)
