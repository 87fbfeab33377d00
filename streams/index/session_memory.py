"""Vector memory of sessions: turns as points, found again by likeness (risk memory, layer 4), and their topics."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import chain
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from models.errors import AmbiguousApp
from models.events import DEFAULT_APP, Position, Role, SegmentCompacted, SessionName, TopicChanged, Turn
from models.retrieval.fusion import Place
from streams.index.between import ALWAYS, Between
from streams.index.collections import CORRECTIONS, SEGMENTS, TOPICS, TURNS, RememberedTopic, RememberedTurn, turn_key
from streams.index.event_points import Collection, Payload
from streams.index.turn_traits import turn_point
from streams.ports import Condition, Embedder, Point, Vectors, VectorStore, Where

_LARGEST_TURN = _LARGEST_OFFSET = 2**53
_MOST_PARTS = 64
"""Sessions of one topic that are read …"""
_MOST_SUMMARIES = 3
"""… and the latest summaries that are given together."""
_TURNS_A_SESSION = 5
"""Looked at for each session that is wanted: several may be of one, or of the session itself."""
_NEAR_TURNS = 8
"""Numbers this near are read in one go, with what lies between them: a call costs more than a few turns."""


class SessionVectorMemory:
    """Turns of all sessions in one collection; every look-up is filtered to one session of one app.

    Rules for input out of the ordinary:

    * Of several turns with one number the first in the log stands (`streams.index.turn_numbers`, which the role asks
      before it adds): the same as in the archive and, while it knows the number, in the session's state.
    * Each session keeps the newest `keep_turns` turn numbers. The rest goes after each batch that brings a turn beyond
      them, once per session and batch.
    * A turn without text is kept for readers of the last turns; it resembles nothing.
    """

    def __init__(self, store: VectorStore, embedder: Embedder, *, keep_turns: int = 1_000) -> None:
        self._store = store
        self._embedder = embedder
        self._keep_turns = keep_turns

    async def add_turns(
        self,
        turns: Sequence[Turn],
        vectors: Vectors,
        risks: Sequence[float | None] | None = None,
        places: Sequence[Position | None] | None = None,
        languages: Sequence[str | None] | None = None,
    ) -> None:
        """Index turns in log order, with vectors `(n_turns, dim)`; durable on return, repeating it changes nothing."""
        missing = [None] * len(turns)
        parts = zip(turns, vectors, risks or missing, places or missing, languages or missing, strict=True)
        await self._store.upsert(TURNS.name, [_point(*each) for each in parts])
        await forget_older(self._store, TURNS, turns, self._keep_turns, {})

    async def find_similar(
        self, query: str, session: SessionName, top_k: int = 5, between: Between = ALWAYS
    ) -> list[RememberedTurn]:
        """Past turns of the session most like the query, best first; none for a query without words."""
        near = await TURNS.nearest(self._store, self._embedder, query, {**_of(session), **between.turns()}, top_k)
        return [replace(turn, similarity=cosine) for turn, cosine in near]

    async def sessions_like(self, session: SessionName, numbers: Iterable[int], top_k: int) -> list[RememberedTurn]:
        """The turn most like one of these in each other session of the app, the most like first, with its similarity.

        Of several that are as like, the first. Turns without words, or not indexed any more, resemble nothing.
        """
        found: dict[str, RememberedTurn] = {}
        for turn in await self.turns_numbered(session, numbers):
            of_app = {"app_id": session.app_id}
            near = await TURNS.nearest(self._store, self._embedder, turn.content, of_app, top_k * _TURNS_A_SESSION)
            for other, cosine in near:
                known = found.get(other.session_id)
                if known is None or (cosine, -other.turn) > (known.similarity or 0.0, -known.turn):
                    found[other.session_id] = replace(other, similarity=cosine)
        found.pop(session.session_id, None)
        return sorted(found.values(), key=lambda each: (-(each.similarity or 0.0), each.session_id))[:top_k]

    async def last_turns(self, session: SessionName, last: int = 10) -> list[RememberedTurn]:
        """The newest turns of the session, oldest first."""
        return (await TURNS.latest(self._store, _of(session), last, by="turn"))[::-1]

    async def segments(self, session: SessionName, last: int) -> list[SegmentCompacted]:
        """The newest segments of the session, oldest first; each with its latest summary."""
        return (await SEGMENTS.latest(self._store, _of(session), last, by="turn"))[::-1]

    async def newest(
        self, where: Mapping[str, Condition], limit: int, *, by: Literal["event_offset", "turn"] = "event_offset"
    ) -> list[RememberedTurn]:
        """Turns of a user, an app or a session, the latest first; those without the field are left out."""
        return await TURNS.latest(self._store, where, limit, by=by)

    async def turns_numbered(self, session: SessionName, numbers: Iterable[int]) -> list[RememberedTurn]:
        """These turns of the session, in order of number; those that are not here are left out."""
        wanted = set(numbers)
        found = await asyncio.gather(*[self._between(session, low, high) for low, high in _runs(wanted)])
        return [turn for run in found for turn in run if turn.turn in wanted]

    async def turns_of_messages(self, session: SessionName, message_ids: Sequence[str]) -> list[RememberedTurn]:
        """Turns of the session by their messages' ids, in order of number; those that are not here are left out."""
        where = {**_of(session), "message_id": tuple(message_ids)}
        return (await TURNS.latest(self._store, where, len(message_ids), by="turn"))[::-1]

    async def turns_at(self, user_id: str, places: Iterable[Place]) -> dict[Place, RememberedTurn]:
        """These turns of a user, in one go; those that are not here, or are somebody else's, are missing."""
        keys = {turn_key(*place): place for place in places}
        if not keys:
            return {}
        found = await TURNS.read(self._store, list(keys), {"user_id": user_id})
        return {keys[key]: turn for key, turn in found.items()}

    async def turns_after(self, session: SessionName, turn: int) -> list[RememberedTurn]:
        """Turns of the session with a higher number, in order of number."""
        return await self._between(session, turn + 1, _LARGEST_TURN)

    async def app_of(self, session_id: str) -> str | None:
        """App that a session id means where none is named: the default app's, or else the only one; None for none.

        Raises:
            AmbiguousApp: Several other apps have a session of this id.
        """
        newest = await self.last_turns(SessionName("", session_id), 1)
        if not newest:
            return None
        if await self._store.count(TURNS.name, where=_of(SessionName(DEFAULT_APP, session_id))):
            return DEFAULT_APP
        app_id = newest[0].app_id
        mine = await self._store.count(TURNS.name, where=_of(SessionName(app_id, session_id)))
        if mine < await self._store.count(TURNS.name, where=_of(SessionName("", session_id))):
            raise AmbiguousApp("several apps have a session of this id: give app_id")
        return app_id

    async def _between(self, session: SessionName, low: int, high: int) -> list[RememberedTurn]:
        where = {**_of(session), "turn": (low, high)}
        limit = min(high - low + 1, self._keep_turns)
        return (await TURNS.latest(self._store, where, limit, by="turn"))[::-1]

    async def count(self, where: Where | None = None) -> int:
        """Turns of all sessions, or those that meet the conditions."""
        return await self._store.count(TURNS.name, where=where)


def _of(session: SessionName) -> dict[str, Condition]:
    """Conditions of one session; without an app those of every app's of this id."""
    return {name: value for name, value in session._asdict().items() if value}


async def forget_before(store: VectorStore, erased: Mapping[tuple[SessionName, int], int]) -> None:
    """Remove turns and topics of sessions that were erased, by partition and offset: what came later is new."""
    for (session, partition), offset in erased.items():
        await store.delete(TURNS.name, where={**_of(session), "partition": partition}, below=("event_offset", offset))
        await store.delete(CORRECTIONS.name, where=_of(session), below=("event_offset", offset))
        await store.delete(TOPICS.name, where=_of(session), below=("source_offset", offset))


async def forget_older(
    store: VectorStore,
    collection: Collection[Any],
    events: Iterable[Turn | TopicChanged],
    keep_turns: int,
    where: Mapping[str, Condition],
) -> None:
    """Remove what a collection has of the events' sessions below the newest turn numbers of each."""
    newest: dict[SessionName, int] = {}
    for event in events:
        session = SessionName(event.app_id, event.session_id)
        newest[session] = max(event.turn, newest.get(session, 0))
    deletions = (
        store.delete(collection.name, where={**_of(session), **where}, below=("turn", turn - keep_turns + 1))
        for session, turn in newest.items()
        if turn >= keep_turns
    )
    await asyncio.gather(*deletions)


def _within(runs: Sequence[int]) -> Iterator[int]:
    """Numbers of runs that are given by their first and last."""
    return chain.from_iterable(range(first, last + 1) for first, last in zip(runs[::2], runs[1::2], strict=True))


def _runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Lowest and highest number of each run of numbers that are near each other.

    >>> _runs({3, 4, 9, 40})
    [(3, 9), (40, 40)]
    """
    runs: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if runs and number - runs[-1][1] <= _NEAR_TURNS:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _point(turn: Turn, vector: Vectors, risk: float | None, place: Position | None, language: str | None) -> Point:
    extra: Payload = {"risk": turn.risk if turn.risk is not None else risk}
    if place is None:
        return turn_point(turn, None, vector, extra, language)
    return turn_point(turn, place.offset, vector, {**extra, "partition": place.partition}, language)


class IndexedTopics(NamedTuple):
    """What is known of one session.

    Attributes:
        kept: Topics that the session's state has, the latest active first.
        since: Lowest offset of their events; what lies below and is not kept is gone.
    """

    kept: list[RememberedTopic]
    since: int


class TopicMemory:
    """Topics of all sessions, one point each as its last event said; every look-up is of one session of one app.

    The events of `conversation-topics.v1` say which turns a topic holds; the words are in the turns' own collection.

    | what | rule |
    |---|---|
    | an event again, or an older one after a crash | replaces the point; the log's last event of a topic wins |
    | turns above the last event's number | belong to the active topic: the state has told of no change since |
    | a topic that was evicted or merged away | is found by its id, or when asked for; not in lists |
    | … and left more than `keep_turns` turns ago | goes: not one of its turns is in the store any more |
    | a topic of a session that was forgotten | as if evicted; the session's new topics have the later events |
    | a turn that the store no longer has | is missing in the history; the archive has it |
    | a topic that came back with its user | has title, summary and messages of all its sessions, found by its id |

    A turn that is `forgotten_after` older than the active topic is of a life of the session that was forgotten.
    """

    def __init__(
        self,
        store: VectorStore,
        embedder: Embedder,
        turns: SessionVectorMemory,
        *,
        keep_turns: int = 1_000,
        forgotten_after: timedelta = timedelta(days=1),
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._turns = turns
        self._keep_turns = keep_turns
        self._forgotten_after = forgotten_after

    # --- writing

    async def add_changes(self, changes: Sequence[tuple[TopicChanged, int]], vectors: Vectors) -> None:
        """Index changes in log order, with vectors `(n_changes, dim)`; durable, and repeating it changes nothing."""
        await TOPICS.write(self._store, changes, vectors)
        await forget_older(self._store, TOPICS, [event for event, _ in changes], self._keep_turns, {"kept": 0})

    # --- reading

    async def topics(self, session: SessionName) -> IndexedTopics:
        """The session's topics; none for a session without events."""
        found = await self._kept(session)
        return found._replace(kept=await asyncio.gather(*map(self._whole, found.kept)))

    async def _kept(self, session: SessionName) -> IndexedTopics:
        """They, with what the session itself has of each."""
        newest = await TOPICS.latest(self._store, _of(session), 1)
        if not newest or newest[0].session_topics == 0:
            return IndexedTopics([], _LARGEST_OFFSET)
        # Events of topics that were forgotten with their session are older than those of all that it has now.
        kept = await TOPICS.latest(self._store, {**_of(session), "kept": 1}, newest[0].session_topics)
        since = min((topic.event_offset for topic in kept), default=_LARGEST_OFFSET)
        active = next((n for n, topic in enumerate(kept) if topic.active), None)
        if active is not None:
            kept[active] = await self._with_turns_after(kept[active], newest[0].turn)
        return IndexedTopics(sorted(kept, key=lambda topic: topic.last_active_at, reverse=True), since)

    async def gone(self, session: SessionName, found: IndexedTopics, limit: int) -> list[RememberedTopic]:
        """Topics that the session had beside those found, the latest change first."""
        kept = {topic.topic_id for topic in found.kept}
        newest = await TOPICS.latest(self._store, _of(session), limit + len(kept))
        return [_as_gone(topic) for topic in newest if topic.topic_id not in kept][:limit]

    async def topic(self, session: SessionName, topic_id: str | None = None) -> RememberedTopic | None:
        """One topic, kept or not, or the active one; None if there is none."""
        for topic in (await self._kept(session)).kept:
            if topic.active if topic_id is None else topic.topic_id == topic_id:
                return await self._whole(topic)
        if topic_id is None:
            return None
        gone = await TOPICS.latest(self._store, {**_of(session), "topic_id": topic_id}, 1)
        return _as_gone(gone[0]) if gone else None

    async def find_similar(
        self,
        query: str,
        session: SessionName,
        top_k: int = 5,
        *,
        include_gone: bool = False,
        between: Between = ALWAYS,
    ) -> list[RememberedTopic]:
        """Topics of the session most like the query by title and summary, best first; none for one without words."""
        found = await self.topics(session)
        where = _of(session)
        if not include_gone:
            where |= {"kept": 1, "event_offset": (found.since, _LARGEST_OFFSET)}
        kept = {topic.topic_id: topic for topic in found.kept}
        # How long the active topic goes on, its point does not say.
        most = top_k if between == ALWAYS else self._keep_turns
        near = await TOPICS.nearest(self._store, self._embedder, query, where, most)
        if came_back := [topic for topic in found.kept if topic.recalled_messages]:
            ids = tuple(topic.topic_id for topic in came_back)
            elsewhere: Where = {"app_id": came_back[0].app_id, "user_id": came_back[0].user_id, "topic_id": ids}
            near += await TOPICS.nearest(self._store, self._embedder, query, elsewhere, self._keep_turns)
        best: dict[str, RememberedTopic] = {}
        for topic, score in sorted(near, key=lambda hit: (-hit[1], hit[0].topic_id)):
            told = kept.get(topic.topic_id) or _as_gone(topic)
            best.setdefault(topic.topic_id, replace(told, similarity=score))
        return [each for each in best.values() if between.meets(each.created_at, each.last_active_at)][:top_k]

    async def app_of(self, session_id: str) -> str | None:
        """As `SessionVectorMemory.app_of`: a topic is of turns."""
        return await self._turns.app_of(session_id)

    async def messages(self, topic: RememberedTopic, *, include_packed: bool) -> list[RememberedTurn]:
        """The topic's messages that the store has, in order of time; without packed ones those at hand.

        Of a topic that came back with its user, what was at hand when the session before ended is at hand.
        """
        parts = await self.parts(topic)
        if include_packed:
            named = [(each, [*each.active_turns, *each.packed_turns, *_within(each.released_runs)]) for each in parts]
        else:
            others = sorted((each for each in parts if each is not topic), key=lambda each: each.last_active_at)
            named = [(each, each.active_turns) for each in (*others[-1:], topic)]
        found = await asyncio.gather(
            *[self._turns.turns_numbered(SessionName(each.app_id, each.session_id), turns) for each, turns in named]
        )
        return sorted(chain.from_iterable(found), key=lambda turn: (turn.timestamp, turn.turn))

    async def parts(self, topic: RememberedTopic) -> list[RememberedTopic]:
        """The topic in the sessions of its user, where it began first; in its own one as it is."""
        if not topic.recalled_messages:
            return [topic]
        where = {"app_id": topic.app_id, "user_id": topic.user_id, "topic_id": topic.topic_id}
        found = await TOPICS.latest(self._store, where, _MOST_PARTS)
        others = [_as_gone(each) for each in found if each.session_id != topic.session_id]
        return sorted([*others, topic], key=lambda each: (each.recalled_messages, each.last_active_at))

    async def _whole(self, topic: RememberedTopic) -> RememberedTopic:
        """A topic that came back with the title, summaries and tags that it has elsewhere."""
        if not topic.recalled_messages:
            return topic
        parts = await self.parts(topic)
        summaries = [each.summary for each in parts if each.summary]
        written_by = [each.summarised_by for each in parts if each.summary]
        return replace(
            topic,
            title=next((each.title for each in parts if each.title), ""),
            summary="\n".join(summaries[-_MOST_SUMMARIES:]) or None,
            summarised_by=written_by[-1] if written_by else None,
            tags=list(dict.fromkeys(tag for each in parts for tag in each.tags)),
        )

    async def _with_turns_after(self, topic: RememberedTopic, turn: int) -> RememberedTopic:
        """The active topic with the turns that no event has named."""
        earliest = topic.created_at - self._forgotten_after
        said = await self._turns.turns_after(SessionName(topic.app_id, topic.session_id), turn)
        after = [each for each in said if each.timestamp > earliest]
        if not after:
            return topic
        return replace(
            topic,
            active_turns=[*topic.active_turns, *(each.turn for each in after)],
            message_count=topic.message_count + len(after),
            access_count=topic.access_count + sum(each.role == Role.USER for each in after),
            last_active_at=max(topic.last_active_at, *(each.timestamp for each in after)),
        )


def _as_gone(topic: RememberedTopic) -> RememberedTopic:
    return replace(topic, active=False, kept=False)
