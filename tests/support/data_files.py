"""Data that tests read: labelled sentences and conversations in `tests/data`."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent.parent / "data"


@cache
def data_file(name: str) -> dict[str, Any]:
    """The content of a file, by its name without ending."""
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text("utf-8"))
