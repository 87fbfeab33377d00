"""Long conversations taken through topic memory one message at a time: what each costs, and what is held after it.

Every message begins from stored parts and ends with changed ones, as in a batch that brings one turn of a session: the
dearest case. Times are CPU time of this thread, so that what else runs on the machine takes none of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from time import thread_time

from msgspec import Struct, field
from msgspec.structs import replace

from jobs.lab.bench.measuring import BenchFailed, Figures
from jobs.lab.eval.topics_dialogues import TopicDialogue
from models.events import Role, TopicCompaction, Turn
from models.policy import Policy
from models.session.topics.conversation_topics import ConversationTopics, CountedMessage
from models.session.topics.matching import TopicVectors, topic_vector
from models.session.topics.state import PREFIX, Damage, TopicChange
from models.state.buffer import BufferedTurn, encode_turn
from models.state.parts import Parts
from streams.index.edge import EdgeStore
from streams.index.session_memory import SessionVectorMemory
from streams.ports import Embedder, Vectors

SESSION_TURNS = 600
"""Dialogues are strung together up to so many turns: somebody's long conversation with an assistant."""
TWENTY = 20
"""Topics of which the source gives figures."""
_SIZED_EVERY = 10
_BETWEEN_TURNS = timedelta(seconds=5)
_SLOT = re.compile(r"t[a-z]?(\d+)(?:\.\d+)?")


class LongSession(Struct, frozen=True):
    """Dialogues strung together, numbered and dated anew, with the vectors of their user turns, `(n_turns, dim)`."""

    turns: Sequence[Turn]
    vectors: Vectors


class TopicWork(Struct):
    """What one or more sessions cost and held.

    Attributes:
        plain_ms: Each addition that neither packed nor unpacked anything.
        compacting_ms: Each addition with a compaction.
        unpacking_ms: Each addition that brought packed messages back.
        topic_bytes: Of each topic, every tenth message.
        twenty_topics_bytes: The twenty largest topics, every tenth message of sessions that have as many.
        most_topics: Of a session at once.
        compactions: Lineage of each, with the number of its session.
    """

    plain_ms: list[float] = field(default_factory=list)
    compacting_ms: list[float] = field(default_factory=list)
    unpacking_ms: list[float] = field(default_factory=list)
    topic_bytes: list[int] = field(default_factory=list)
    twenty_topics_bytes: list[int] = field(default_factory=list)
    most_topics: int = 0
    compactions: list[tuple[int, TopicCompaction]] = field(default_factory=list)


class _TopicRecorder:
    """Takes down what topic memory tells."""

    def __init__(self) -> None:
        self.changes: list[TopicChange] = []

    def topic(self, change: TopicChange) -> None:
        self.changes.append(change)

    def damage(self, damage: Damage) -> None:
        raise AssertionError(damage.detail)  # nothing here damages what was packed


def long_sessions(dialogues: Sequence[TopicDialogue], embedder: Embedder, most: int) -> list[LongSession]:
    """String dialogues together, those of one user first of all; at most so many sessions, from all over the files."""
    strings: list[list[Turn]] = [[]]
    for _, of_source in groupby(dialogues, key=lambda dialogue: dialogue.source):
        strings.append([])
        for _, of_user in groupby(of_source, key=lambda dialogue: dialogue.user_id):
            said = [turn for dialogue in of_user for turn in dialogue.turns]
            if len(strings[-1]) + len(said) > SESSION_TURNS:
                strings.append([])
            strings[-1] += said
    whole = [string[:SESSION_TURNS] for string in strings if string]
    step = -(-len(whole) // most)
    return [_session(f"long-{n}", string, embedder) for n, string in enumerate(whole[::step])]


def _session(session_id: str, string: Sequence[Turn], embedder: Embedder) -> LongSession:
    turns: list[Turn] = []
    for number, turn in enumerate(string):
        at = turn.timestamp if not turns else max(turn.timestamp, turns[-1].timestamp + _BETWEEN_TURNS)
        turns.append(_renamed(turn, session_id, number, at))
    return LongSession(turns, embedder.embed([turn.content for turn in turns]))


def _renamed(turn: Turn, session_id: str, number: int, at: datetime) -> Turn:
    return replace(turn, session_id=session_id, turn=number, timestamp=at, metadata=None)


def messages_of(session: LongSession) -> list[CountedMessage]:
    """A session's turns as topic memory takes them."""
    messages = []
    for turn, vector in zip(session.turns, session.vectors, strict=True):
        said = BufferedTurn(turn.turn, turn.role, turn.content, turn.timestamp, turn.risk)
        matched = topic_vector(vector) if turn.role is Role.USER else None
        messages.append(CountedMessage(said, encode_turn(said), matched, None, turn.timestamp))
    return messages


def walk(sessions: Sequence[LongSession], policy: Policy) -> TopicWork:
    """Take every message of every session into topic memory."""
    walked = TopicWork()
    for number, session in enumerate(sessions):
        stored: dict[str, bytes] = {}
        for place, message in enumerate(messages_of(session)):
            changes = _add(stored, message, policy, walked)
            walked.compactions += [(number, change.compaction) for change in changes if change.compaction]
            if place % _SIZED_EVERY == _SIZED_EVERY - 1:
                _size(stored, walked)
    return walked


def _add(stored: dict[str, bytes], message: CountedMessage, policy: Policy, walked: TopicWork) -> list[TopicChange]:
    emitted = _TopicRecorder()
    began = thread_time()
    parts = Parts(stored)
    topics = ConversationTopics(parts, policy.topics, policy.risk.risky_topics)
    topics.add(message, lambda: f"topic-{message.turn.turn}", emitted)
    topics.flush()
    changed = parts.changes()
    took_ms = (thread_time() - began) * 1000
    causes = {change.cause for change in emitted.changes}
    if "compacted" in causes:
        walked.compacting_ms.append(took_ms)
    elif "unpacked" in causes:
        walked.unpacking_ms.append(took_ms)
    else:
        walked.plain_ms.append(took_ms)
    store(stored, changed)
    return emitted.changes


def store(stored: dict[str, bytes], changed: dict[str, bytes | None]) -> None:
    """Write changed parts."""
    for name, value in changed.items():
        if value is None:
            stored.pop(name, None)
        else:
            stored[name] = value


def bytes_by_topic(stored: dict[str, bytes]) -> dict[int, int]:
    """Bytes of each topic's parts, by its slot.

    >>> bytes_by_topic({"head": b"1234", "ti": b"12", "t3": b"123", "tm3.0": b"1", "tp12.4": b"12345"})
    {3: 4, 12: 5}
    """
    sizes: dict[int, int] = {}
    for name, value in stored.items():
        if name.startswith(PREFIX) and (found := _SLOT.fullmatch(name)):
            slot = int(found[1])
            sizes[slot] = sizes.get(slot, 0) + len(value)
    return sizes


def _size(stored: dict[str, bytes], walked: TopicWork) -> None:
    sizes = sorted(bytes_by_topic(stored).values(), reverse=True)
    walked.most_topics = max(walked.most_topics, len(sizes))
    walked.topic_bytes += sizes
    if len(sizes) >= TWENTY:
        walked.twenty_topics_bytes.append(sum(sizes[:TWENTY]))


def match_ms(sessions: Sequence[LongSession], policy: Policy) -> list[float]:
    """CPU milliseconds to find the nearest of twenty topics, which are read from their parts each time.

    Raises:
        BenchFailed: There are not twenty-one user messages.
    """
    said = [message for session in sessions for message in messages_of(session) if message.vector is not None]
    if len(said) <= TWENTY:
        raise BenchFailed(f"{len(said)} user messages are too few to match against {TWENTY} topics: give more files")
    stored = _twenty_topics(said[:TWENTY], policy)
    return [_nearest_ms(stored, message, policy) for message in said[TWENTY:]]


def _twenty_topics(messages: Sequence[CountedMessage], policy: Policy) -> dict[str, bytes]:
    """State with a topic for each message."""
    apart = replace(policy.topics, similarity_threshold=1.0, active_bonus=0.0, merge_similarity=1.0)
    stored: dict[str, bytes] = {}
    for number, message in enumerate(messages):
        parts = Parts(stored)
        topics = ConversationTopics(parts, apart)
        topics.add(message, partial("topic-{}".format, number), _TopicRecorder())
        topics.flush()
        store(stored, parts.changes())
    return stored


def _nearest_ms(stored: dict[str, bytes], message: CountedMessage, policy: Policy) -> float:
    vector = message.vector
    assert vector is not None, "only messages with a vector are matched"  # noqa: S101
    topics = ConversationTopics(Parts(stored), policy.topics)
    began = thread_time()
    cosines = TopicVectors(topics.store).cosines(vector)
    max(cosines, key=cosines.__getitem__)
    return (thread_time() - began) * 1000


TOP_K = 5
_FIRST_SENTENCE = re.compile(r".+?(?:[.!?](?=\s)|\n|$)", re.DOTALL)
_LEAST_WORDS = 3
"""A first sentence of fewer words (thanks, yes) asks for nothing in particular."""


async def probe_packed(
    sessions: Sequence[LongSession], walked: TopicWork, embedder: Embedder, policy: Policy, *, most: int
) -> Figures:
    """Look for packed messages, at most so many, from all sessions alike.

    The vector memory is Qdrant Edge in a temporary folder, filled as the index role fills it.
    """
    packed = sorted({(number, turn) for number, lineage in walked.compactions for turn in lineage.turns})
    asked = [place for place in packed if len(first_sentence(_content(sessions, place)).split()) >= _LEAST_WORDS]
    asked = asked[:: -(-len(asked) // most) or 1]
    with TemporaryDirectory(prefix="turntide-bench-") as folder:
        found = await _search(sessions, asked, embedder, policy, Path(folder))
    in_part = [place for place in asked if _in_part(_content(sessions, place))]
    probes = sum(lineage.probes for _, lineage in walked.compactions)
    still = sum(lineage.probes_found for _, lineage in walked.compactions)
    return {
        "compactions": len(walked.compactions),
        "probes": probes,
        "loss": 1 - still / probes if probes else 0.0,
        "searched": len(asked),
        "found_ratio": _share(asked, found),
        "searched_in_part": len(in_part),
        "found_in_part_ratio": _share(in_part, found),
    }


def first_sentence(content: str) -> str:
    """A message's first sentence or line.

    >>> first_sentence("My parcel is late. Where is it?")
    'My parcel is late.'
    """
    found = _FIRST_SENTENCE.match(content.strip())
    return found[0].strip() if found else ""


def _in_part(content: str) -> bool:
    return len(first_sentence(content)) < len(content.strip())


def _content(sessions: Sequence[LongSession], place: tuple[int, int]) -> str:
    number, turn = place
    return sessions[number].turns[turn].content


def _share(places: Sequence[tuple[int, int]], found: set[tuple[int, int]]) -> float:
    return sum(place in found for place in places) / len(places) if places else 1.0


async def _search(
    sessions: Sequence[LongSession],
    asked: Sequence[tuple[int, int]],
    embedder: Embedder,
    policy: Policy,
    folder: Path,
) -> set[tuple[int, int]]:
    store = EdgeStore(folder, embedder=embedder.name)
    memory = SessionVectorMemory(store, embedder, keep_turns=policy.memory.stored_vectors)
    found = set()
    try:
        for session in sessions:
            await memory.add_turns(session.turns, session.vectors)
        for place in asked:
            content = _content(sessions, place)
            session_id = sessions[place[0]].turns[0].session_id
            hits = await memory.find_similar(first_sentence(content), session_id, TOP_K)
            if any(hit.turn == place[1] or hit.content == content for hit in hits):
                found.add(place)
    finally:
        await store.close()
    return found
