"""The archive as an erasure needs it, beside the landing of the role that has it open."""

# ruff: noqa: S608 - tables are constants of this package, values travel as parameters

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from models.erasure import ErasureSubject
from models.events import ErasedStore, EraseRequested, SessionName
from streams.archive.erasing import erase
from streams.archive.removal import forget_mined
from streams.archive.schema import RAW
from streams.archive.writer import LakeWriter
from streams.erase.logs import Positions

Spoke = tuple[str, str, str, datetime, datetime]
"""Session, app, user, first and last event time."""
_TURNS = (
    f"(SELECT session_id, app_id, user_id, timestamp FROM {RAW}.turns "
    f"UNION ALL SELECT session_id, app_id, user_id, timestamp FROM {RAW}.numbered_turns)"
)
_STIR_EVERY_S = 5.0
_Done = TypeVar("_Done")


@dataclass(frozen=True)
class WriterArchive:
    """Works with the role's own writer while the role does not.

    Args:
        writer: The archive.
        alone: Held by whoever works with the writer.
        stir: Called every few seconds while nothing can land: that is no stall.
        mined: Folder of what mining keeps.
        withdraw: Withdraws what the archive removed from what was published of it.
    """

    writer: LakeWriter
    alone: asyncio.Lock
    stir: Callable[[], None]
    mined: Path
    withdraw: Callable[[], list[ErasedStore]] = list

    async def landed(self) -> Positions:
        """Next offset to land of each partition, as the catalog has it."""
        known = await self._while_alone(self.writer.offsets)
        return {place: move.next for place, move in known.items()}

    async def sessions_of(self, request: EraseRequested) -> Sequence[Spoke]:
        """Everybody who spoke in a session of the subject, and when."""
        wanted = {name: value for name in ("app_id", "user_id", "session_id") if (value := getattr(request, name))}
        condition = " AND ".join(f"{name} = ${name}" for name in wanted)
        return await self._asked(
            f"WITH mine AS (SELECT app_id, session_id FROM {_TURNS} WHERE {condition} "
            f"UNION SELECT app_id, session_id FROM {RAW}.profiles WHERE {condition}), "
            f"spoke AS (SELECT session_id, app_id, user_id, timestamp AS first, timestamp AS last FROM {_TURNS} "
            f"UNION ALL SELECT session_id, app_id, user_id, started_at, timestamp FROM {RAW}.profiles) "
            "SELECT session_id, app_id, user_id, min(first), max(last) FROM spoke "
            "SEMI JOIN mine USING (app_id, session_id) GROUP BY ALL ORDER BY ALL",
            wanted,
        )

    async def namesakes_of(self, sessions: Collection[SessionName]) -> set[SessionName]:
        """Every session with the id of one of these, in any app, as far as the archive tells."""
        rows = await self._asked(
            f"SELECT DISTINCT app_id, session_id FROM (SELECT app_id, session_id FROM {_TURNS} UNION ALL "
            f"SELECT app_id, session_id FROM {RAW}.profiles) WHERE session_id IN (SELECT unnest($ids::VARCHAR[]))",
            {"ids": sorted({session.session_id for session in sessions})},
        )
        return {SessionName(*row) for row in rows}

    async def _asked(self, sql: str, parameters: dict[str, Any]) -> list[Any]:
        return await self._while_alone(lambda: self.writer.con.execute(sql, parameters).fetchall())

    async def erase(self, subject: ErasureSubject) -> list[ErasedStore]:
        """Remove every row of the subject, their bytes, and what was mined and published of them."""
        erased = await self._while_alone(lambda: erase(self.writer, subject, now=datetime.now(UTC)))
        mined = await asyncio.to_thread(forget_mined, self.mined)
        return [*erased, mined, *await asyncio.to_thread(self.withdraw)]

    async def _while_alone(self, work: Callable[[], _Done]) -> _Done:
        """Work in a thread; a cancelled caller waits for it, for nobody else may use the writer before."""
        async with self.alone:
            working = asyncio.ensure_future(asyncio.to_thread(work))
            try:
                while not working.done():
                    await asyncio.wait({working}, timeout=_STIR_EVERY_S)
                    self.stir()
            finally:
                await asyncio.wait({working})
            return working.result()
