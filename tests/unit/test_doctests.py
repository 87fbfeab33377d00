"""Examples in docstrings give what they say."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WITH_EXAMPLES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for top in ("models", "streams", "jobs")
    for path in sorted((ROOT / top).rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
]


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_hold(module: str) -> None:
    """Every example of a module that has one."""
    actual = doctest.testmod(importlib.import_module(module))

    assert (0, True) == (actual.failed, actual.attempted > 0)
