"""Labelled examples of `tests/data`: texts, and what each is or becomes."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def examples(name: str) -> dict[str, Any]:
    """The lists of a file, by their names."""
    return tomllib.loads((Path(__file__).parent.parent / "data" / f"{name}.toml").read_text("utf-8"))
