"""Long conversations taken through topic memory one message at a time: what each costs, and what is held after it.

Every message begins from stored parts and ends with changed ones, as in a batch that brings one turn of a session: the
dearest case. Times are CPU time of this thread, so that what else runs on the machine takes none of it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from itertools import groupby
from time import thread_time

from msgspec import Struct, field
from msgspec.structs import replace

from jobs.lab.bench.measuring import BenchFailed
from jobs.lab.eval.dialogues import TopicDialogue
from models.events import Role, TopicCompaction, Turn
from models.policy import Policy
from models.session.topics.conversation_topics import ConversationTopics, CountedMessage
from models.session.topics.matching import TopicVectors, topic_vector
from models.session.topics.state import PREFIX, Damage, TopicChange
from models.state.buffer import BufferedTurn, encode_turn
from models.state.parts import Parts
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
    """Cost and content of topic memory over some sessions.

    Attributes:
        taken_ms: Milliseconds of each addition, by what it did beside adding: `compacted`, `unpacked` or nothing.
        topic_bytes: Of each topic, every tenth message.
        twenty_topics_bytes: The twenty largest topics, every tenth message of sessions that have as many.
        most_topics: Of a session at once.
        compactions: Lineage of each.
    """

    taken_ms: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    topic_bytes: list[int] = field(default_factory=list)
    twenty_topics_bytes: list[int] = field(default_factory=list)
    most_topics: int = 0
    compactions: list[TopicCompaction] = field(default_factory=list)


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
        turns.append(replace(turn, session_id=session_id, turn=number, timestamp=at, metadata=None))
    return LongSession(turns, embedder.embed([turn.content for turn in turns]))


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
    for session in sessions:
        stored: dict[str, bytes] = {}
        for place, message in enumerate(messages_of(session)):
            began_s = thread_time()
            changes, changed = _add(stored, message, policy)
            taken_ms = (thread_time() - began_s) * 1000
            causes = {change.cause for change in changes}
            walked.taken_ms[next((each for each in ("compacted", "unpacked") if each in causes), "")].append(taken_ms)
            walked.compactions += [change.compaction for change in changes if change.compaction]
            _store(stored, changed)
            if place % _SIZED_EVERY == _SIZED_EVERY - 1:
                _size(stored, walked)
    return walked


def _add(
    stored: dict[str, bytes], message: CountedMessage, policy: Policy
) -> tuple[list[TopicChange], dict[str, bytes | None]]:
    """Changes that topic memory emits for a message, and the parts that it changes."""
    emitted, parts = _TopicRecorder(), Parts(stored)
    topics = ConversationTopics(parts, policy.topics, policy.risk.risky_topics)
    topics.add(message, lambda: f"topic-{message.turn.turn}", emitted)
    topics.flush()
    return emitted.changes, parts.changes()


def _store(stored: dict[str, bytes], changed: dict[str, bytes | None]) -> None:
    stored |= {name: value for name, value in changed.items() if value is not None}
    for name in [name for name, value in changed.items() if value is None]:
        stored.pop(name, None)


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
    apart = replace(policy.topics, similarity_threshold=1.0, active_bonus=0.0, merge_similarity=1.0)
    stored, taken_ms = dict[str, bytes](), list[float]()
    for message in said[:TWENTY]:
        _store(stored, _add(stored, message, replace(policy, topics=apart))[1])
    for message in said[TWENTY:]:
        topics = ConversationTopics(Parts(stored), policy.topics)
        began_s = thread_time()
        cosines = TopicVectors(topics.store).cosines(message.vector)  # type: ignore[arg-type]
        max(cosines, key=cosines.__getitem__)
        taken_ms.append((thread_time() - began_s) * 1000)
    return taken_ms
