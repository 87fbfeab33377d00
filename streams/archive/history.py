"""Turns of one session from the archive, for readers of a whole conversation: what the index has given up is here.

Each question opens a reader of its own, beside the loop and few at a time: it sees what is landed, holds nothing in
between, and an archive that is made, moved or upgraded meanwhile is found at the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from models.errors import ConfigurationError
from models.events import SessionName, Turn
from streams.settings import Settings

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from streams.archive.inputs import ArchivedMessage

_Found = TypeVar("_Found")
_AT_ONCE = 2
"""Each has an engine of its own: some 50 MB."""
_COLUMNS = ("user_id", "turn", "role", "content", "timestamp", "project_id", "risk", "message_id", "corrected_at")
_SQL = f"""
SELECT {", ".join(_COLUMNS)}, content_exact, kafka_partition AS "partition" FROM turns
WHERE app_id = ? AND session_id = ? AND turn >= ? ORDER BY turn LIMIT ?
"""  # noqa: S608 - columns are constants, values travel as parameters


class ArchivedTurn(Turn, frozen=True, kw_only=True):
    """A turn as the archive has it, where its record stands, and when its text was put right last."""

    partition: int
    corrected_at: datetime | None = None
    event_offset: None = None
    similarity: None = None


class ArchivedTurns:
    """Reads turns of sessions.

    Args:
        settings: Where the archive is.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def turns(self, session: SessionName, first: int, limit: int) -> list[ArchivedTurn] | None:
        """Turns from a number on, in order, as they are landed; None: there is no archive.

        Raises:
            StoreUnavailable: It cannot be read.
        """
        asked = [*session, first, limit]
        return await self._reading(lambda lake, read: [_turn(session, row) for row in read.rows_of(lake, _SQL, asked)])

    async def of_topic(self, session: SessionName, topic_id: str) -> list[ArchivedMessage] | None:
        """Messages of a topic of a session and of those that merged into it, in order of time; likewise."""
        return await self._reading(lambda lake, read: read.messages_of(lake, session, topic_id))

    async def _reading(self, ask: Callable[[DuckDBPyConnection, Any], list[_Found]]) -> list[_Found] | None:
        def reading_it() -> list[_Found] | None:
            from streams.archive import inputs  # noqa: PLC0415 - loads an engine, for few questions
            from streams.archive.catalog import paths_of, reading  # noqa: PLC0415 - likewise

            try:
                with reading(paths_of(self._settings)) as lake:
                    return ask(lake, inputs)
            except ConfigurationError:
                return None

        async with self._room:
            return await asyncio.to_thread(reading_it)


def _turn(session: SessionName, row: dict[str, Any]) -> ArchivedTurn:
    exact = row.pop("content_exact")
    if exact is not None:
        row["content"] = exact.decode()
    for name in ("timestamp", "corrected_at"):
        row[name] = row[name] and row[name].astimezone(UTC)
    return msgspec.convert({**session._asdict(), **row}, ArchivedTurn)
