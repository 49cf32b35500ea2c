"""The quick start is short, and every section of it runs somewhere."""

import re
from pathlib import Path

import pytest
from markdown_examples import FENCE, ROOT, check_examples, section_of

GUIDE = ROOT / "docs/guide/quick-start.md"
MOST_LINES = 15
HERE = "NumPy, or any loop"
# Which test runs a section, in which environment.
RUN_BY = {
    HERE: "tests/docs/test_quick_start.py",
    "PyTorch": "python/tests/test_pytorch_examples.py",
    "Keras": "python/tests/test_keras_run.py",
    "Sessions of TensorFlow": "python/tests/test_tensorflow_session_docs.py",
    "Estimators": "python/tests/test_tensorflow_estimator.py",
    "MXNet": "python/tests/test_mxnet_run.py",
    "XGBoost": "python/tests/test_xgboost_run.py",
    "LightGBM": "python/tests/test_xgboost_run.py",
    "C++": "tests/native/run.sh",
}


def test_every_section_is_run_by_a_test():
    headings = re.findall(r"^## (.+)$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == list(RUN_BY)
    for heading, file in RUN_BY.items():
        text = (ROOT / file).read_text(encoding="utf-8")
        assert "quick-start.md" in text
        assert f'"{heading}"' in text or heading == "C++"


@pytest.mark.parametrize("heading", RUN_BY)
def test_a_section_is_one_block_of_few_lines(heading):
    text = GUIDE.read_text(encoding="utf-8")
    start, end = section_of(text, heading)
    blocks = [code for language, code in FENCE.findall(text[start:end]) if language != "text"]
    assert len(blocks) == 1
    assert len([line for line in blocks[0].splitlines() if line.strip()]) <= MOST_LINES


def test_the_loop_prints_what_is_shown(tmp_path: Path):
    check_examples(GUIDE, tmp_path, HERE)
