"""The contract of the views, `views.json`: view → column → type, as readers may rely on it.

A column may be added; one that goes, or has another type, breaks queries: it makes a new version of the views.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from streams.archive.views.published import VIEWS_VERSION, columns_of_views

NAME = "views.json"

Columns = Mapping[str, Mapping[str, str]]


def views_contract() -> str:
    """The document, from the definitions."""
    document = {"version": VIEWS_VERSION, "views": columns_of_views()}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def breaks(directory: Path) -> list[str]:
    """What the committed contract promises and the code no longer has, in words; empty without a contract.

    Another version promises anew.
    """
    path = directory / NAME
    if not path.is_file():
        return []
    promised: Any = msgspec.json.decode(path.read_bytes())
    return [] if promised["version"] != VIEWS_VERSION else lost(promised["views"], columns_of_views())


def lost(promised: Columns, present: Columns) -> list[str]:
    """Columns that went or changed their type.

    >>> lost({"turns": {"turn": "BIGINT", "risk": "DOUBLE"}}, {"turns": {"turn": "VARCHAR", "new": "DOUBLE"}})
    ['turns.turn was BIGINT, is VARCHAR', 'turns.risk is gone']
    """
    found = []
    for view, columns in promised.items():
        for column, kind in columns.items():
            now = present.get(view, {}).get(column)
            if now is None:
                found.append(f"{view}.{column} is gone")
            elif not _grew(kind, now):
                found.append(f"{view}.{column} was {kind}, is {now}")
    return found


def _grew(promised: str, present: str) -> bool:
    """Whether a type is the same, or the same with further fields in its structs."""
    import duckdb

    from streams.archive.schema_evolution import grows

    if promised == present:
        return True
    with duckdb.connect() as con:
        return grows(con, promised, present)
