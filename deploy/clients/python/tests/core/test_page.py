"""What people copy from the documentation is part of a program that runs here, or of one of the adapters' tests."""

import re
import subprocess
import sys
from pathlib import Path

_CLIENTS = Path(__file__).parents[3]
_BLOCK = re.compile(r"^```(?:python|ts)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PAGES = (_CLIENTS.parent / "clients.md", _CLIENTS / "python" / "README.md")


def test_each_block_is_part_of_an_example() -> None:
    """Word for word."""
    programs = [each.read_text() for each in _CLIENTS.glob("*/examples/*.[pt][ys]")]
    blocks = [(page.name, block) for page in _PAGES for block in _BLOCK.findall(page.read_text())]

    assert len(blocks) > len(_PAGES)
    assert [(page, block) for page, block in blocks if not any(block in each for each in programs)] == []


def test_three_lines_are_enough(app: str) -> None:
    """The first thing that people try."""
    program = (_CLIENTS / "python/examples/three_lines.py").read_text().replace('app="', f'app="{app}-')

    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)

    assert "- name: Alex" in done.stdout
