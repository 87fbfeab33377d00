"""Archive side of an erasure, and sessions as the archive has them: it knows more of them than the logs."""

# ruff: noqa: S608 - tables are constants of this package, values travel as parameters

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import duckdb

from models.erasure import Subject
from models.events import ErasedStore, EraseRequested
from streams.archive.schema import RAW
from streams.erase.readers import Positions

Spoke = tuple[str, str, str, datetime, datetime]
"""Session, app, user, first and last event time."""


class Archive(Protocol):
    """What an erasure needs of the archive."""

    async def landed(self) -> Positions:
        """Next offset to land of each partition, as the catalog has it."""
        ...

    async def sessions_of(self, request: EraseRequested) -> Sequence[Spoke]:
        """Everybody who spoke in a session of the subject, and when."""
        ...

    async def erase(self, subject: Subject) -> list[ErasedStore]:
        """Remove every row of the subject, and their bytes."""
        ...


def sessions_of(con: duckdb.DuckDBPyConnection, request: EraseRequested) -> list[Spoke]:
    """Everybody who spoke in a session of the subject, and when.

    Args:
        con: The archive.
        request: Whose sessions.
    """
    named = {
        "app_id": request.app_id,
        "user_id": request.user_id,
        "session_id": request.session_id,
    }
    wanted = {name: value for name, value in named.items() if value}
    condition = " AND ".join(f"{name} = ${name}" for name in wanted)
    rows: list[Spoke] = con.execute(
        f"WITH mine AS (SELECT session_id FROM {RAW}.turns WHERE {condition} "
        f"UNION SELECT session_id FROM {RAW}.profiles WHERE {condition}), "
        f"spoke AS (SELECT session_id, app_id, user_id, timestamp AS first, timestamp AS last FROM {RAW}.turns "
        f"UNION ALL SELECT session_id, app_id, user_id, started_at, timestamp FROM {RAW}.profiles) "
        "SELECT session_id, app_id, user_id, min(first), max(last) FROM spoke "
        "WHERE session_id IN (FROM mine) GROUP BY ALL ORDER BY ALL",
        wanted,
    ).fetchall()
    return rows
