"""Layer 2, the working memory: summaries of the last turns in groups of five (risk memory).

A segment removed from the working memory leaves one line (`PastSegments`), so that the episode of a long session
covers all of it.

A segment is `segment_turns` counted turns. The open segment takes counted turns in order of arrival, also late ones;
when full, it is ordered by turn number and compacted. So every counted turn is in exactly one segment and compaction
never waits; for turns in order these are the ranges (0, 4), (5, 9), (10, 14), both ends included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec import Struct

from models.policy import Policy
from models.state.buffer import BufferedTurn
from models.state.parts import Parts
from models.text.summary import EXTRACTIVE, Passage, Said, Summary, names_something, summarise
from models.text.words import estimate_tokens, utf8_bytes


class KeptSegment(Struct, frozen=True, array_like=True):
    """Summary of some turns. Risk is the mean of the scored ones, 0 without any."""

    turns: list[int]
    summary: str
    summarised_by: str
    risk_mean: float
    key_topics: list[str]
    started_at: datetime
    ended_at: datetime
    tokens_before: int
    bytes_before: int

    @property
    def first_turn(self) -> int:
        """Lowest turn number."""
        return self.turns[0]

    @property
    def last_turn(self) -> int:
        """Highest turn number, included."""
        return self.turns[-1]


class SegmentRef(Struct, frozen=True, array_like=True, gc=False):
    """Reference to a segment of the working memory, without its content."""

    slot: int
    first_turn: int
    last_turn: int


_PAST = "l"
"""Prefix of the names of parts that store one line each."""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(KeptSegment).decode


def compact(turns: Sequence[BufferedTurn], policy: Policy, said: Sequence[Said] | None = None) -> KeptSegment:
    """Summarise some turns, ordered by number. Topics, rising risk and requests come first (risk memory, layer 2).

    `said` are the turns' sentences, if the caller has them.
    """
    memory = policy.memory
    summary = summarise(
        [Passage(turn.content, turn.risk or 0.0) for turn in turns],
        sentences=memory.summary_sentences,
        sentence_chars=memory.sentence_chars,
        key_topics=memory.key_topics,
        risky=policy.risk.risky_topics,
        said=said,
        tells=names_something,
    )
    risks = [turn.risk for turn in turns if turn.risk is not None]
    times = [turn.timestamp for turn in turns]
    return KeptSegment(
        turns=[turn.turn for turn in turns],
        summary=summary.text,
        summarised_by=EXTRACTIVE,
        risk_mean=sum(risks) / len(risks) if risks else 0.0,
        key_topics=summary.key_topics,
        started_at=min(times),
        ended_at=max(times),
        tokens_before=sum([estimate_tokens(turn.content) for turn in turns]),
        bytes_before=sum([utf8_bytes(turn.content) for turn in turns]),
    )


class WorkingMemory:
    """The last segments, a ring of parts. `refs` is stored in the head, oldest first; changed in place."""

    def __init__(self, refs: list[SegmentRef], parts: Parts) -> None:
        self.refs = refs
        self._parts = parts

    def append(self, segment: KeptSegment, capacity: int) -> list[KeptSegment]:
        """Add a segment; removes and returns the oldest beyond `capacity`."""
        left = [self.read(ref) for ref in self.refs[: max(0, len(self.refs) + 1 - capacity)]]
        while len(self.refs) > capacity:
            self._parts.drop(f"s{self.refs.pop(0).slot}")
        if len(self.refs) == capacity:
            slot = self.refs.pop(0).slot
        else:
            slot = max((ref.slot for ref in self.refs), default=-1) + 1
        self.refs.append(SegmentRef(slot, segment.first_turn, segment.last_turn))
        self._parts.put(f"s{slot}", _encode(segment))
        return left

    def find(self, first_turn: int, last_turn: int, ended_at: datetime | None = None) -> SegmentRef | None:
        """The stored segment with this range, and with this end if given, or None."""
        for ref in self.refs:
            if ref.first_turn == first_turn and ref.last_turn == last_turn:
                return ref if ended_at is None or self.read(ref).ended_at == ended_at else None
        return None

    def read(self, ref: SegmentRef) -> KeptSegment:
        """Read a stored segment."""
        data = self._parts.get(f"s{ref.slot}")
        assert data is not None, "the head and its parts are written together"  # noqa: S101
        return _decode(data)

    def replace(self, ref: SegmentRef, summary: str, summarised_by: str) -> KeptSegment:
        """Replace a segment's summary by a better one."""
        segment = msgspec.structs.replace(self.read(ref), summary=summary, summarised_by=summarised_by)
        self._parts.put(f"s{ref.slot}", _encode(segment))
        return segment

    def all(self) -> list[KeptSegment]:
        """The stored segments, oldest first."""
        return [self.read(ref) for ref in self.refs]


class PastSegment(Struct, frozen=True, array_like=True, gc=False):
    """Line of a segment that was removed from the working memory."""

    first_turn: int
    risk_mean: float
    summary: str
    """The most informative sentence of its summary."""


_decode_past = msgspec.msgpack.Decoder(PastSegment).decode


class PastSegments:
    """Lines of segments removed from the working memory, one part each; changed in place.

    The policy limits their number: beyond it the line whose neighbours are closest to each other is removed, risky ones
    later. So they stay spread over the whole session, and a removed segment writes exactly one line.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def all(self) -> list[PastSegment]:
        """All lines, in order of turn."""
        return [line for line, _ in self._named()]

    def add(self, segment: KeptSegment, policy: Policy) -> None:
        """Store the line of a segment."""
        memory, named = policy.memory, self._named()
        passage = Passage(segment.summary, segment.risk_mean)
        chars = memory.past_segment_chars
        said = summarise([passage], sentences=1, sentence_chars=chars, key_topics=0, tells=names_something)
        line = PastSegment(segment.first_turn, segment.risk_mean, said.text)
        used = {name for _, name in named}
        new = next(name for slot in range(len(named) + 1) if (name := f"{_PAST}{slot}") not in used)
        named = sorted([*named, (line, new)], key=lambda each: each[0].first_turn)
        while len(named) > memory.past_segments:
            _, name = named.pop(_missed_least([line for line, _ in named], segment.last_turn))
            self._parts.drop(name)
        if any(name == new for _, name in named):
            self._parts.put(new, _encode(line))

    def _named(self) -> list[tuple[PastSegment, str]]:
        parts = ((self._parts.get(name), name) for name in self._parts.names(_PAST))
        found = [(_decode_past(data), name) for data, name in parts if data is not None]
        return sorted(found, key=lambda each: each[0].first_turn)


def _missed_least(lines: Sequence[PastSegment], last_turn: int) -> int:
    """Index of the line to remove so that the others are spread best; the first is removed only if it is alone."""
    turns = [*(line.first_turn for line in lines), last_turn + 1]
    gaps = [(turns[n + 1] - turns[n - 1]) * (1 + lines[n].risk_mean) for n in range(1, len(lines))]
    return 1 + gaps.index(min(gaps)) if gaps else 0


def close_episode(
    past: Sequence[PastSegment], segments: Sequence[KeptSegment], repeated_topics: Mapping[str, int], policy: Policy
) -> Summary:
    """Summary of a whole session from those of its segments, with the topics that most turns named.

    It takes one sentence from each equal part of the session, as many parts as sentences, before two from any.

    Args:
        past: Lines of segments removed from the working memory.
        segments: The working memory, oldest first: with defaults the last 50 turns.
        repeated_topics: Topic → number of turns, of the whole session.
        policy: Sizes.
    """
    memory = policy.memory
    said: list[PastSegment | KeptSegment] = [*past, *segments]
    first = min((each.first_turn for each in said), default=0)
    turns = 1 + max((segment.last_turn for segment in segments), default=0) - first
    summary = summarise(
        [Passage(each.summary, each.risk_mean) for each in said],
        sentences=memory.episode_sentences,
        sentence_chars=memory.sentence_chars,
        key_topics=memory.key_topics,
        risky=policy.risk.risky_topics,
        tells=names_something,
        runs=[(each.first_turn - first) * memory.episode_sentences // turns for each in said],
    )
    frequent = sorted(repeated_topics, key=lambda topic: -repeated_topics[topic])
    return Summary(summary.text, frequent[: memory.key_topics] or summary.key_topics)
