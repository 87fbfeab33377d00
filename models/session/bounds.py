"""Bounds of what is written: a record or a write that its topic refuses would stop a role at the same place for ever.

A changelog write is one record batch, whole or not at all, and an output one record. Every list, text and map of the
state has a limit in the policy, every limit a maximum, and what the largest policy makes of the largest input still
fits (`tests/property/test_bounds.py`). What remains is how much goes into one write:

| what | bound | where |
|---|---|---|
| record taken in | 1 MiB (`intake.max_record_bytes`), content 256 KiB; more is a dead letter | `models/wire/codec.py` |
| dead letter | 3.5 MiB of 4: beyond it the original bytes stay in the source topic alone | `fitting_dead_letter` |
| state written at once | 2 MiB and what one record adds: a turn, 1 MiB of closings, 100 apps' windows | `Footprint` |
| … of a user, a space, a project | 2 MiB and what one event writes | `models/state/entity.py` |
| … of a project's event that changes many items | 1 MiB, the rest with the next step | `project/state.py` |
| sessions closed by one record | 100, fewer if they have many parts or long ids | `models/partition/sessions.py` |
| sessions open, sessions closed and remembered, apps | `partition.*` of the policy | `models/partition/sessions.py` |

All sizes are upper estimates in bytes, of the changelog's msgpack or the outputs' JSON.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from models.events import AnyTurn, DeadLetter, OutputEvent, SegmentCompacted
from models.policy import Policy
from models.risk.sequence import SIGNAL_NAMES
from models.session.messages import PART_BYTES
from models.session.state import Open, SessionState
from models.state.buffer import PREFIX as TRANSCRIPT_PARTS
from models.state.entity import record_bytes
from models.text.words import utf8_bytes

KIB = 1024
MIB = 1024 * KIB
CHUNK_STATE_BYTES = 2 * MIB
"""A fold is cut after this much changed state …"""
CLOSINGS_STATE_BYTES = MIB
"""… and a record closes no further session after this much."""
STATE_WRITE_BYTES = 7 * MIB
"""Record batch of the changelog; the topic takes 8 MiB."""
OUTPUT_RECORD_BYTES = 900 * KIB
"""Record of an output topic; Kafka's default limit is 1 MiB."""
DEAD_LETTER_BYTES = 3584 * KIB
"""Dead letter as JSON; its topic takes 4 MiB."""

_ESCAPED_CHAR = 6
_TOPIC = 33 * 4 + 8
"""A topic of a turn and its count: at most 32 characters and what separates it."""
_PANE = 48
_SLOT = 14
_TURN_FIXED = 2 * (_PANE + 18 + 16 + _SLOT) + 80 + 28 + 73
"""Panes, risk, change of mode and slots of a turn, its risk point, segment and vector."""
_HEAD = 1 * KIB
"""Counters, times, mode and alert of an open head."""
_SIGNAL = 64
"""Of one sequence signal, as msgpack: it keeps a few numbers."""
_MESSAGE = 64
"""The last message as the signals saw it, and the counters of the judgement."""
_SHARE = 12
"""What a turn added to the log-odds, and its number."""


class Footprint:
    """What folds add to one write of the changelog, counted while they happen, never too low."""

    def __init__(self, policy: Policy) -> None:
        memory = policy.memory
        named = policy.profile.topics_per_turn + len(policy.risk.risky_topics)
        self._turn = 2 * named * _TOPIC + _TURN_FIXED
        self._segment = memory.key_topics * _TOPIC + memory.segment_turns * _SLOT + 2 * KIB
        self._vectors, self._past_segments = memory.recent_vectors, memory.past_segments
        # The judgement is one part, written whole.
        self._judgement = 0
        if policy.judging_model is not None:
            signals = len({*SIGNAL_NAMES, *policy.judging_model.weights})
            self._judgement = signals * _SIGNAL + 2 * _MESSAGE + policy.escalation.kept_turns * _SHARE

    def touch(self, key: str, head_bytes: int = 0) -> int:
        """A session is changed for the first time in this write: its head, so large when it was read, goes along."""
        judgement = self._judgement + record_bytes(key) if self._judgement else 0
        return head_bytes + _HEAD + record_bytes(key) + judgement

    def turn(self, key: str, turn: AnyTurn) -> int:
        """A turn: its buffered content, vector and segment, and what it adds to the head."""
        project = 0 if turn.project_id is None else utf8_bytes(turn.app_id) + utf8_bytes(turn.project_id)
        noted = 0 if turn.message_id is None else PART_BYTES + record_bytes(key)
        return utf8_bytes(turn.content) + self._turn + project + noted + 3 * record_bytes(key)

    def topics_and_notables(self, key: str, state: SessionState) -> int:
        """What a fold wrote of topics and notable sentences."""
        size, parts = state.take_written()
        return size + parts * record_bytes(key)

    def segments(self, outputs: Sequence[OutputEvent]) -> int:
        """Segments that a fold wrote, by what it said of them."""
        segments = [output for output in outputs if isinstance(output, SegmentCompacted)]
        return sum([utf8_bytes(segment.summary) + self._segment for segment in segments])

    def closing(self, key: str, state: SessionState) -> int:
        """A session that closes: a tombstone for each part, and the small head."""
        head, parts = state.head, 3
        if isinstance(head, Open):
            parts += self._vectors + len(head.buffer_slots) + len(head.segment_refs) + self._past_segments
            parts += state.parts.count(TRANSCRIPT_PARTS)
        else:
            parts += state.lasting_parts
        return parts * record_bytes(key) + _PANE * len(head.windows.panes)


def fitting_dead_letter(letter: DeadLetter) -> DeadLetter:
    """The letter as its topic can take it: whole if it fits, else without original bytes, and it says so.

    A compressed record can be many times larger than the limit of the topic it came from. What is left out stands in
    that topic, at the letter's place, while its retention lasts.
    """
    if _letter_bytes(letter) <= DEAD_LETTER_BYTES:
        return letter
    sizes = f"value {len(letter.value or b'')} bytes, key {len(letter.key or b'')} bytes"
    return _without_bytes(letter, f"too large to keep here: {sizes}")


def thinned_dead_letter(letter: DeadLetter) -> DeadLetter:
    """The letter of a record that is one of a flood: without original bytes, and it says so."""
    return _without_bytes(letter, "one of a flood, bytes left out")


def _without_bytes(letter: DeadLetter, why: str) -> DeadLetter:
    return msgspec.structs.replace(
        letter,
        value=None,
        headers=[],
        key=letter.key if letter.key is not None and len(letter.key) <= KIB else None,
        detail=f"{letter.detail} ({why}; the original stands in the source topic)",
    )


def _letter_bytes(letter: DeadLetter) -> int:
    """As JSON in a record: base64 of everything, and the key once more as the record's own."""
    raw = len(letter.value or b"") + 2 * len(letter.key or b"")
    raw += sum(len(name) * 5 + len(value or b"") + 16 for name, value in letter.headers)
    return raw * 4 // 3 + 2 * KIB + _ESCAPED_CHAR * len(letter.detail)
