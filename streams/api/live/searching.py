"""Search over memories, for the live page: turns and episodes by words and meaning, facts and memories of apps too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from models.text.words import fold_text, words_of
from streams.api.answers import answered
from streams.api.live.board import LiveBoard
from streams.api.live.messages import Hit, Hits, SearchKind
from streams.api.live.routes import LIVE, OfApp
from streams.api.users.messages import MAX_QUERY_CHARS
from streams.http.security import caller
from streams.index.collections import FACTS, MEMORIES
from streams.index.hybrid_search import HybridSearch, Scope
from streams.ports import Condition, VectorStore

MOST_FACTS = 2_000
"""Facts have no index of words: so many of the latest are looked through."""


class SearchLive(OfApp, frozen=True, kw_only=True):
    """A request for what answers a query."""

    q: Annotated[str, Meta(min_length=1, max_length=MAX_QUERY_CHARS, pattern=r"\S", description="What to look for.")]
    kind: Annotated[SearchKind, Meta(description="Among what.")] = "turns"
    limit: Annotated[int, Meta(ge=1, le=100, description="How many at most.")] = 20


class LiveSearch:
    """Searches for the caller of a request: the store gives only the caller's apps.

    Args:
        board: Knows the apps that have sessions now.
        store: The scoped one.
        search: Over the same store.
    """

    def __init__(self, board: LiveBoard, store: VectorStore, search: HybridSearch) -> None:
        self._board = board
        self._store = store
        self._search = search

    @LIVE.get("/search", "search_live", audits="text_read")
    async def find(self, asked: SearchLive) -> Hits:
        """Turns, episodes, facts of users or memories of apps that answer a query, best first; with their text.

        Raises:
            Problem: 403, another tenant's app.
            StoreUnavailable: The store does not answer.
        """
        asked_by = caller()
        # Without an app those of the caller; who reads all, searches those with sessions on the board.
        apps = asked_by.apps_of(asked.app_id) or tuple(sorted(self._board.apps()))
        if not apps:
            return Hits(hits=[])
        searches = {"turns": self._turns, "episodes": self._episodes, "facts": self._facts, "memories": self._memories}
        hits = await searches[asked.kind](asked.q, apps, asked.limit)
        return Hits(hits=[hit for hit in hits if asked_by.may_read(hit.app_id)])

    async def _turns(self, query: str, apps: tuple[str, ...], limit: int) -> list[Hit]:
        found = await self._search.turns(query, Scope(app_ids=apps), limit)
        return [answered(Hit, each.turn, kind="turns", score=each.score, text=each.turn.content) for each in found]

    async def _episodes(self, query: str, apps: tuple[str, ...], limit: int) -> list[Hit]:
        found = await self._search.episodes(query, Scope(app_ids=apps), limit)
        return [
            answered(
                Hit,
                each,
                kind="episodes",
                session_id=each.turns[-1].session_id if each.turns else None,
                turn=each.turns[-1].turns[-1] if each.turns else None,
                score=score,
                text=each.summary,
            )
            for each, score in found
        ]

    async def _facts(self, query: str, apps: tuple[str, ...], limit: int) -> list[Hit]:
        where = _of(apps) | {"active": 1}
        facts = await FACTS.latest(self._store, where, MOST_FACTS)
        wanted = set(words_of(fold_text(query)))
        hits = [
            answered(
                Hit,
                fact,
                kind="facts",
                session_id=fact.session_id or None,
                turn=fact.turn if fact.turn >= 0 else None,
                score=_share(wanted, f"{fact.key.replace('_', ' ')} {fact.value} {fact.user_id}"),
                text=f"{fact.key}: {fact.value}",
            )
            for fact in facts
        ]
        return sorted((hit for hit in hits if hit.score > 0), key=lambda hit: -hit.score)[:limit]

    async def _memories(self, query: str, apps: tuple[str, ...], limit: int) -> list[Hit]:
        where = _of(apps) | {"owned": 1}
        found = await self._search.events(MEMORIES, query, where, limit)
        return [
            answered(
                Hit,
                each,
                kind="memories",
                session_id=each.session_id or None,
                turn=None,
                score=score,
                text=each.content,
            )
            for each, score in found
        ]


def _of(apps: Sequence[str]) -> dict[str, Condition]:
    return {"app_id": apps[0] if len(apps) == 1 else tuple(apps)}


def _share(wanted: set[str], text: str) -> float:
    """How many of the words a text has, 0-1."""
    return len(wanted.intersection(words_of(fold_text(text)))) / len(wanted) if wanted else 0.0
