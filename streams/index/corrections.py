"""Corrections of turns in the index: a turn shows the text that it was given last, whichever comes first here.

A correction stands by itself, under its turn's key, and is written into the turn behind it. So a turn that is indexed
again, or comes from another topic later than its correction, has the new text all the same. One of an earlier life of
the session (its place is before the turn's) says nothing of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from models.events import DeadLetter, SessionName
from models.session.turn_numbers import PlacedCorrection, PlacedTurn, unknown_turn
from streams.index.collections import CORRECTIONS, TURNS, turn_key
from streams.index.turn_traits import turn_point
from streams.ports import Embedder, VectorStore


class TurnCorrections:
    """Corrections of all sessions' turns.

    Args:
        store: Where the turns are.
        embedder: Embeds new texts.
        keep_turns: The store keeps the newest so many numbers of a session.
    """

    def __init__(self, store: VectorStore, embedder: Embedder, *, keep_turns: int) -> None:
        self._store = store
        self._embedder = embedder
        self._keep_turns = keep_turns
        self._any: bool | None = None

    async def take(
        self, corrections: Sequence[PlacedCorrection], turns: Iterable[PlacedTurn], *, settled: bool
    ) -> list[DeadLetter]:
        """Note corrections, then put right the turns that they or earlier ones are of; a repeat changes nothing.

        Args:
            corrections: Of a batch, in log order.
            turns: Of the same batch, indexed already.
            settled: Whether the logs were read to their end: before, a turn may be on its way from another topic.

        Returns:
            Letters of corrections whose turn is not here, but of those that the store has given up; they go.
        """
        if corrections:
            events = [(each.event, each.place.offset) for each in corrections]
            await CORRECTIONS.note(self._store, self._embedder.dim, events)
            self._any = True
        if self._any is None:
            self._any = bool(await self._store.count(CORRECTIONS.name))
        if not self._any:
            return []
        names = [*(each.name for each in corrections), *(each.name for each in turns)]
        keys = dict.fromkeys(turn_key(*name) for name in names)
        said = await TURNS.read(self._store, list(keys), {})
        known = await CORRECTIONS.read(self._store, list(said), {})
        wrong = [
            replace(turn, content=known[key].content, corrected_at=known[key].timestamp)
            for key, turn in said.items()
            if key in known and (turn.event_offset or -1) < known[key].event_offset
        ]
        if wrong:
            vectors = await asyncio.to_thread(self._embedder.embed, [turn.content for turn in wrong])
            points = [turn_point(turn, turn.event_offset, vector) for turn, vector in zip(wrong, vectors, strict=True)]
            await self._store.upsert(TURNS.name, points)
        missing = [each for each in corrections if settled and turn_key(*each.name) not in said]
        for session, turn in {each.name for each in missing}:
            await self._store.delete(CORRECTIONS.name, where={**session._asdict(), "turn": turn})
        return [unknown_turn(each) for each in missing if await self._is_unknown(*each.name)]

    async def _is_unknown(self, session: SessionName, turn: int) -> bool:
        """Whether the store never had a turn that it has not: it gives up those far below a session's newest."""
        newest = await TURNS.latest(self._store, session._asdict(), 1, by="turn")
        return not newest or turn > newest[0].turn - self._keep_turns
