"""Checks that every code block of a guide stands in one of the example files.

Usage: check_guide.py GUIDE FILES...

Blocks marked cpp, c and cmake are looked up line by line; they may be indented less than in the file.
"""

import re
import sys
import textwrap
from pathlib import Path


def stands_in(block, lines):
    wanted = textwrap.dedent(block).splitlines()
    for start in range(len(lines) - len(wanted) + 1):
        window = "\n".join(lines[start : start + len(wanted)])
        if textwrap.dedent(window).splitlines() == wanted:
            return True
    return False


def main():
    guide, *files = sys.argv[1:]
    texts = [Path(file).read_text().splitlines() for file in files]
    blocks = re.findall(r"^```(?:cpp|c|cmake)\n(.*?)^```$", Path(guide).read_text(), re.M | re.S)
    assert blocks, f"{guide} has no code blocks"
    missing = [block for block in blocks if not any(stands_in(block, text) for text in texts)]
    for block in missing:
        print(f"Not in any example:\n{block}")
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
