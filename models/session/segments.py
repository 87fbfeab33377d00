"""Layer 2, the working memory: summaries of the last turns, five by five (risk memory).

A segment is `segment_turns` counted turns. Which ones: the open segment takes counted turns as they come, also one
that comes late; full, it is ordered by turn number and compacted. So every counted turn is in exactly one segment and
compaction never waits; in order these are the ranges (0, 4), (5, 9), (10, 14) with both ends inside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec import Struct

from models.policy import Policy
from models.state.buffer import BufferedTurn
from models.state.parts import Parts
from models.text.summary import EXTRACTIVE, Passage, Said, Summary, summarise
from models.text.words import estimate_tokens, utf8_bytes


class KeptSegment(Struct, frozen=True, array_like=True):
    """What is kept of some turns. Risk is the mean of the scored ones, 0 without any."""

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
        """Highest turn number, inside."""
        return self.turns[-1]


class SegmentRef(Struct, frozen=True, array_like=True, gc=False):
    """Where a segment of the working memory is kept, without reading it."""

    slot: int
    first_turn: int
    last_turn: int


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(KeptSegment).decode


def compact(turns: Sequence[BufferedTurn], policy: Policy, said: Sequence[Said] | None = None) -> KeptSegment:
    """Summarise some turns, ordered by number. Topics, rising risk and requests come first (risk memory, layer 2).

    `said` are the turns' sentences, where the caller has them already.
    """
    memory = policy.memory
    summary = summarise(
        [Passage(turn.content, turn.risk or 0.0) for turn in turns],
        sentences=memory.summary_sentences,
        sentence_chars=memory.sentence_chars,
        key_topics=memory.key_topics,
        risky=policy.risk.risky_topics,
        said=said,
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
    """The last segments, a ring of parts. `refs` is kept in the head, oldest first; changed in place."""

    def __init__(self, refs: list[SegmentRef], parts: Parts) -> None:
        self.refs = refs
        self._parts = parts

    def append(self, segment: KeptSegment, capacity: int) -> None:
        """Add a segment; the oldest beyond `capacity` gives way."""
        while len(self.refs) > capacity:
            self._parts.drop(f"s{self.refs.pop(0).slot}")
        if len(self.refs) == capacity:
            slot = self.refs.pop(0).slot
        else:
            slot = max((ref.slot for ref in self.refs), default=-1) + 1
        self.refs.append(SegmentRef(slot, segment.first_turn, segment.last_turn))
        self._parts.put(f"s{slot}", _encode(segment))

    def find(self, first_turn: int, last_turn: int) -> SegmentRef | None:
        """The kept segment with this range, or None."""
        for ref in self.refs:
            if ref.first_turn == first_turn and ref.last_turn == last_turn:
                return ref
        return None

    def read(self, ref: SegmentRef) -> KeptSegment:
        """A kept segment."""
        data = self._parts.get(f"s{ref.slot}")
        assert data is not None, "the head and its parts are written together"  # noqa: S101
        return _decode(data)

    def replace(self, ref: SegmentRef, summary: str, summarised_by: str) -> KeptSegment:
        """Put a better summary in the place of a segment's present one."""
        segment = msgspec.structs.replace(self.read(ref), summary=summary, summarised_by=summarised_by)
        self._parts.put(f"s{ref.slot}", _encode(segment))
        return segment

    def all(self) -> list[KeptSegment]:
        """The kept segments, oldest first."""
        return [self.read(ref) for ref in self.refs]


def close_episode(segments: Sequence[KeptSegment], repeated_topics: Mapping[str, int], policy: Policy) -> Summary:
    """Summary of a whole session from the summaries of its last segments, with the topics most turns named.

    Args:
        segments: The working memory, oldest first: with defaults the last 50 turns.
        repeated_topics: Topic to turns, of the whole session.
        policy: Sizes.
    """
    memory = policy.memory
    summary = summarise(
        [Passage(segment.summary, segment.risk_mean) for segment in segments],
        sentences=memory.episode_sentences,
        sentence_chars=memory.sentence_chars,
        key_topics=memory.key_topics,
        risky=policy.risk.risky_topics,
    )
    frequent = sorted(repeated_topics, key=lambda topic: -repeated_topics[topic])
    return Summary(summary.text, frequent[: memory.key_topics] or summary.key_topics)
