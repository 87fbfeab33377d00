"""Vector memory of sessions: turns as points, found by similarity (risk memory, layer 4), and their topics."""

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
"""Sessions read for one topic."""
_MOST_SUMMARIES = 3
"""Latest summaries joined in the answer."""
_TURNS_A_SESSION = 5
"""Candidates read per wanted session: several may be of one session, or of the session itself."""
_NEAR_TURNS = 8
"""Numbers at most this far apart are read in one call with the turns between: a call costs more than a few turns."""


class SessionVectorMemory:
    """Turns of all sessions in one collection; every look-up is filtered to one session of one app.

    Rules for unusual input:

    * Of several turns with one number the first in the log is stored (`streams.index.turn_numbers`, which the role
      calls before it adds), as in the archive and, while the number is in it, in the session's state.
    * Each session keeps the newest `keep_turns` turn numbers. Older turns are removed after each batch that adds a
      newer one, once per session and batch.
    * A turn without text is stored for readers of the last turns; no search by similarity finds it.
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
        """Index turns in log order, with vectors `(n_turns, dim)`; durable on return, idempotent."""
        missing = [None] * len(turns)
        parts = zip(turns, vectors, risks or missing, places or missing, languages or missing, strict=True)
        await self._store.upsert(TURNS.name, [_point(*each) for each in parts])
        await forget_older(self._store, TURNS, turns, self._keep_turns, {})

    async def find_similar(
        self, query: str, session: SessionName, top_k: int = 5, between: Between = ALWAYS
    ) -> list[RememberedTurn]:
        """Past turns of the session most similar to the query, best first; none for a query without words."""
        near = await TURNS.nearest(self._store, self._embedder, query, {**_of(session), **between.turns()}, top_k)
        return [replace(turn, similarity=cosine) for turn, cosine in near]

    async def sessions_like(self, session: SessionName, numbers: Iterable[int], top_k: int) -> list[RememberedTurn]:
        """The most similar turn to any of these in each other session of the app, with its similarity, best first.

        Of equally similar turns, the first. Turns without words, or no longer indexed, are skipped.
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
        """The newest segments of the session with their latest summaries, oldest first."""
        return (await SEGMENTS.latest(self._store, _of(session), last, by="turn"))[::-1]

    async def newest(
        self, where: Mapping[str, Condition], limit: int, *, by: Literal["event_offset", "turn"] = "event_offset"
    ) -> list[RememberedTurn]:
        """Turns of a user, an app or a session, the latest first; those without the field are omitted."""
        return await TURNS.latest(self._store, where, limit, by=by)

    async def turns_numbered(self, session: SessionName, numbers: Iterable[int]) -> list[RememberedTurn]:
        """These turns of the session, in order of number; turns that are not stored are omitted."""
        wanted = set(numbers)
        found = await asyncio.gather(*[self._between(session, low, high) for low, high in _runs(wanted)])
        return [turn for run in found for turn in run if turn.turn in wanted]

    async def turns_of_messages(self, session: SessionName, message_ids: Sequence[str]) -> list[RememberedTurn]:
        """Turns of the session by their messages' ids, in order of number; turns that are not stored are omitted."""
        where = {**_of(session), "message_id": tuple(message_ids)}
        return (await TURNS.latest(self._store, where, len(message_ids), by="turn"))[::-1]

    async def turns_at(self, user_id: str, places: Iterable[Place]) -> dict[Place, RememberedTurn]:
        """These turns of a user, in one call; turns that are not stored, or are another user's, are omitted."""
        keys = {turn_key(*place): place for place in places}
        if not keys:
            return {}
        found = await TURNS.read(self._store, list(keys), {"user_id": user_id})
        return {keys[key]: turn for key, turn in found.items()}

    async def turns_after(self, session: SessionName, turn: int) -> list[RememberedTurn]:
        """Turns of the session with a higher number, in order of number."""
        return await self._between(session, turn + 1, _LARGEST_TURN)

    async def app_of(self, session_id: str) -> str | None:
        """App of a session id given without an app: the default app, else the only app with it; None if there is none.

        Raises:
            AmbiguousApp: Several apps, none of them the default, have a session with this id.
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
        """Number of turns of all sessions, or of those that match the conditions."""
        return await self._store.count(TURNS.name, where=where)


def _of(session: SessionName) -> dict[str, Condition]:
    """Conditions for one session; without an app, for the sessions with this id in every app."""
    return {name: value for name, value in session._asdict().items() if value}


async def forget_before(store: VectorStore, erased: Mapping[tuple[SessionName, int], int]) -> None:
    """Remove turns and topics of erased sessions, by partition and offset; later ones are new and stay."""
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
    """Remove points of the events' sessions below the newest turn numbers of each session."""
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
    """Numbers of runs given by first and last number."""
    return chain.from_iterable(range(first, last + 1) for first, last in zip(runs[::2], runs[1::2], strict=True))


def _runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """First and last number of each run of numbers at most `_NEAR_TURNS` apart.

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
    """Indexed topics of one session.

    Attributes:
        kept: Topics in the session's state, the latest active first.
        since: Lowest offset of their events; topics below it that are not in `kept` are no longer in the state.
    """

    kept: list[RememberedTopic]
    since: int


class TopicMemory:
    """Topics of all sessions, one point each from its last event; every look-up is filtered to one session of one app.

    The events of `conversation-topics.v1` list the turns of a topic; their text is in the collection of turns.

    | what | rule |
    |---|---|
    | an event again, or an older one after a crash | replaces the point; the log's last event of a topic wins |
    | turns above the last event's number | belong to the active topic: the state has sent no change since |
    | an evicted or merged topic | is found by its id, or on request; not in lists |
    | … and left more than `keep_turns` turns ago | is removed: none of its turns is in the store |
    | a topic of a session that expired | as if evicted; the session's new topics have the later events |
    | a turn that is no longer in the store | is missing in the history; the archive has it |
    | a topic resumed in a later session | has title, summary and messages of all its sessions, found by its id |

    A turn that is `forgotten_after` older than the active topic belongs to the session before it expired.
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
        """Index changes in log order, with vectors `(n_changes, dim)`; durable on return, idempotent."""
        await TOPICS.write(self._store, changes, vectors)
        await forget_older(self._store, TOPICS, [event for event, _ in changes], self._keep_turns, {"kept": 0})

    # --- reading

    async def topics(self, session: SessionName) -> IndexedTopics:
        """The session's topics; none for a session without events."""
        found = await self._kept(session)
        return found._replace(kept=await asyncio.gather(*map(self._whole, found.kept)))

    async def _kept(self, session: SessionName) -> IndexedTopics:
        """The session's topics, each with only the data of this session."""
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
        """Earlier topics of the session that are not among those found, the latest change first."""
        kept = {topic.topic_id for topic in found.kept}
        newest = await TOPICS.latest(self._store, _of(session), limit + len(kept))
        return [_as_gone(topic) for topic in newest if topic.topic_id not in kept][:limit]

    async def topic(self, session: SessionName, topic_id: str | None = None) -> RememberedTopic | None:
        """One topic, in the state or not, or the active one; None if there is none."""
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
        """Topics with the most similar title and summary, best first; none for a query without words."""
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
        """As `SessionVectorMemory.app_of`: a topic consists of turns."""
        return await self._turns.app_of(session_id)

    async def messages(self, topic: RememberedTopic, *, include_packed: bool) -> list[RememberedTurn]:
        """The topic's stored messages, in order of time; without `include_packed`, only those that are not packed.

        For a resumed topic, messages that were not packed at the end of the previous session count as not packed.
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
        """The topic in each session of its user, the session where it began first; in its own session unchanged."""
        if not topic.recalled_messages:
            return [topic]
        where = {"app_id": topic.app_id, "user_id": topic.user_id, "topic_id": topic.topic_id}
        found = await TOPICS.latest(self._store, where, _MOST_PARTS)
        others = [_as_gone(each) for each in found if each.session_id != topic.session_id]
        return sorted([*others, topic], key=lambda each: (each.recalled_messages, each.last_active_at))

    async def _whole(self, topic: RememberedTopic) -> RememberedTopic:
        """A resumed topic with its titles, summaries and tags from earlier sessions."""
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
        """The active topic with the turns after its last event."""
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
