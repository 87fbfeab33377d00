"""How large everything can get, from the policy alone: nothing that is written can exceed what a topic takes.

A changelog write is one record batch, whole or not at all, and an output one record; either above its limit would
stop the role at the same record for ever. So each is bounded by construction: every list, text and map of the state
has a limit in the policy, every limit a maximum, and the largest policy still fits (`largest_state_part_bytes`,
`largest_output_bytes`; a test holds real sessions against both). What remains is how much goes into one write:

| what | bound | where |
|---|---|---|
| record taken in | 1 MiB (`intake.max_record_bytes`), content 256 KiB; more is a dead letter | `models/wire/codec.py` |
| dead letter | 3.5 MiB of 4: beyond it the original bytes stay in the source topic alone | `fitting_dead_letter` |
| state written at once | 2 MiB and what one record adds: a turn, 1 MiB of closings, 100 apps' windows | `Footprint` |
| sessions closed by one record | 100, fewer if they have many parts or long ids | `models/partition/sessions.py` |
| sessions open, sessions closed and remembered, apps | `partition.*` of the policy | `models/partition/sessions.py` |

All sizes are upper estimates in bytes, of the changelog's msgpack or the outputs' JSON.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from models.events import DeadLetter, OutputEvent, SegmentCompacted, Turn
from models.policy import Policy
from models.risk.sequence.signals import SIGNAL_NAMES
from models.session.state import Open, SessionState
from models.session.topics.compaction import SENTENCE_CHARS
from models.session.topics.matching import TOPIC_DIMS
from models.state.buffer import ASKED_CHARS
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

_RECORD = 80
"""A changelog record beside its key and value: source offset, part name, lengths, tombstone's header."""
_ID_CHARS = 256
_CHAR = 4
_ESCAPED_CHAR = 6
_TOPIC = 33 * _CHAR + 8
"""A topic of a turn and its count: at most 32 characters and what separates it."""
_PANE = 48
_RISK = 18
_POINT = 80
_TRANSITION = 16
_SEGMENT_REF = 28
_SLOT = 14
_VECTOR = 73
_BLOCK_REF = 24
_TURN_NUMBER = 17
"""As JSON."""
_NOTABLE = 96
"""Beside its text: kind, role, turn and weight, as JSON with the fields' names."""
_ASKED_TURN = 80
"""Beside its text, as JSON: its role, and for a judge its number."""
_HEAD = 1 * KIB
"""Counters, times, mode and alert of an open head."""
_SIGNAL = 64
"""Of one sequence signal, as msgpack: it keeps a few numbers."""
_MESSAGE = 64
"""The last message as the signals saw it, and the counters of the judgement."""
_SHARE = 12
"""What a turn added to the log-odds, and its number."""
_CONTRIBUTION = 512
"""What a signal adds, as JSON, with its reason."""
_OUTPUT = 6 * KIB
"""Ids, source, times, counters and headers of any output; ids may be 256 characters of four bytes."""


class Footprint:
    """What folds add to one write of the changelog, counted while they happen, never too low.

    Args:
        policy: Sizes of what a turn can change.
    """

    def __init__(self, policy: Policy) -> None:
        memory = policy.memory
        named = policy.profile.topics_per_turn + len(policy.risk.risky_topics)
        self._turn = 2 * named * _TOPIC + 2 * (_PANE + _RISK + _TRANSITION + _SLOT) + _POINT + _SEGMENT_REF + _VECTOR
        self._segment = memory.key_topics * _TOPIC + memory.segment_turns * _SLOT + 2 * KIB
        self._vectors = memory.recent_vectors
        # The judgement is one part, written whole.
        self._judgement = 0 if policy.escalation.model_in_force is None else _judgement_bytes(policy)

    def touch(self, session_id: str, head_bytes: int = 0) -> int:
        """A session is changed for the first time in this write: its head, so large when it was read, goes along."""
        judgement = self._judgement + _key(session_id) if self._judgement else 0
        return head_bytes + _HEAD + _key(session_id) + judgement

    def turn(self, turn: Turn) -> int:
        """A turn: its buffered content, vector and segment, and what it adds to the head."""
        project = 0 if turn.project_id is None else utf8_bytes(turn.app_id) + utf8_bytes(turn.project_id)
        return utf8_bytes(turn.content) + self._turn + project + 3 * _key(turn.session_id)

    def topics_and_notables(self, session_id: str, state: SessionState) -> int:
        """What a fold wrote of topics and notable sentences."""
        size, parts = state.take_written()
        return size + parts * _key(session_id)

    def segments(self, outputs: Sequence[OutputEvent]) -> int:
        """Segments that a fold wrote, by what it said of them."""
        segments = [output for output in outputs if isinstance(output, SegmentCompacted)]
        return sum(utf8_bytes(segment.summary) + self._segment for segment in segments)

    def closing(self, session_id: str, state: SessionState) -> int:
        """A session that closes: a tombstone for each part, and the small head."""
        head, parts = state.head, 3
        if isinstance(head, Open):
            parts += self._vectors + len(head.buffer_slots) + len(head.segment_refs)
        else:
            parts += state.lasting_parts
        return parts * _key(session_id) + _PANE * len(head.windows.panes)


def _key(session_id: str) -> int:
    return utf8_bytes(session_id) + _RECORD


def largest_state_part_bytes(policy: Policy) -> dict[str, int]:
    """Part of a session or partition → its largest value."""
    memory, profile, risk = policy.memory, policy.profile, policy.risk
    panes = max(policy.window.panes, policy.partition.app_window.panes) + policy.late_panes
    risky = sum(_CHAR * len(topic) + 8 for topic in risk.risky_topics)
    buffered = memory.buffer_turns + memory.segment_turns
    head = (
        _HEAD
        + 2 * _ID_CHARS * _CHAR
        + (profile.repeated_topics + profile.topics_per_turn) * _TOPIC
        + 2 * risky
        + profile.mode_transitions * _TRANSITION
        + risk.trajectory_window * _RISK
        + profile.every_turns * _POINT
        + panes * _PANE
        + memory.segments * _SEGMENT_REF
        + buffered * 2 * _SLOT
        + policy.projects.projects_of_session * 2 * (_ID_CHARS * _CHAR + 4)
    )
    return {
        "head": head,
        "buffered turn": policy.intake.max_content_bytes + 64,
        "segment": _summary_chars(policy) * _CHAR + _ID_CHARS * _CHAR + memory.key_topics * _TOPIC + 512,
        "vector": _VECTOR,
        "judgement": _judgement_bytes(policy),
        "notable sentences": policy.apps.notables * (policy.apps.notable_chars * _CHAR + _NOTABLE) + 16,
        **_largest_topic_part_bytes(policy),
        "app window": panes * _PANE + 16,
    }


def _judgement_bytes(policy: Policy) -> int:
    return len(SIGNAL_NAMES) * _SIGNAL + 2 * _MESSAGE + policy.escalation.kept_turns * _SHARE


def _largest_topic_part_bytes(policy: Policy) -> dict[str, int]:
    topics, messages = policy.topics, _messages_at_hand(policy)
    content = min(topics.message_chars * _CHAR, policy.intake.max_content_bytes)
    block = topics.block_bytes + topics.message_chars * _ESCAPED_CHAR + KIB
    return {
        "topic index": topics.most_topics * 4 + 64,
        "topic": KIB
        + topics.title_chars * _CHAR
        + topics.tags * (topics.tag_chars * _CHAR + 4)
        + messages * _SLOT
        + (messages + topics.blocks) * _BLOCK_REF,
        "topic embedding": TOPIC_DIMS + 1,
        "topic message": content + 64,
        "topic summary": (topics.summary_sentences * (SENTENCE_CHARS + 1) + _ID_CHARS) * _CHAR + 64,
        "packed block": block * 4 // 3 + topics.block_messages * _SLOT + KIB,
    }


def _messages_at_hand(policy: Policy) -> int:
    """Of one topic at the most: all its history unpacked, and as much as it may grow by then."""
    topics = policy.topics
    return topics.blocks * topics.block_messages + 2 * topics.max_messages + 1


def largest_output_bytes(policy: Policy) -> dict[str, int]:
    """Kind of output → its largest record. What goes to `commands.v1` may take more: `largest_command_bytes`."""
    memory, profile, risk = policy.memory, policy.profile, policy.risk
    risky = sum(_ESCAPED_CHAR * len(topic) + 16 for topic in risk.risky_topics)
    topics = memory.key_topics * (_TOPIC + 8) + risky
    talked = policy.topics
    turns = 3 * _messages_at_hand(policy) + 2 * talked.blocks * talked.block_messages
    return {
        "profile_updated": _OUTPUT
        + profile.repeated_topics * (_TOPIC + 8)
        + risky
        + profile.mode_transitions * 48
        + profile.every_turns * 200,
        "window_closed": _OUTPUT,
        "segment_compacted": _OUTPUT + (_summary_chars(policy) + _ID_CHARS) * _ESCAPED_CHAR + topics,
        "topic_changed": 2 * _OUTPUT
        + talked.title_chars * _ESCAPED_CHAR
        + talked.tags * (talked.tag_chars * _ESCAPED_CHAR + 4)
        + (talked.summary_sentences * (SENTENCE_CHARS + 1) + 2 * _ID_CHARS) * _ESCAPED_CHAR
        + turns * _TURN_NUMBER,
        "episode_closed": _episode_bytes(policy),
        "alert_changed": 2 * _OUTPUT
        + risky
        + policy.alerts.evidence_turns * (_ID_CHARS * _CHAR + 256)
        + (len(SIGNAL_NAMES) + 2) * _CONTRIBUTION
        + policy.escalation.kept_turns * 64,
        "judgement_requested": _OUTPUT + _turns_read(policy, policy.escalation.judge_turn_chars),
    }


def largest_command_bytes(policy: Policy) -> dict[str, int]:
    """Kind of output that goes to `commands.v1`, but for the users' (`models.user.bounds`) → its largest record."""
    apps = policy.apps
    turns = _turns_read(policy, apps.asked_turn_chars)
    return {
        "conversation_ended": _episode_bytes(policy)
        + apps.notables * (apps.notable_chars * _ESCAPED_CHAR + _NOTABLE)
        + (turns if apps.ask else 0),
        "project_turn_added": 2 * _OUTPUT + policy.intake.max_content_bytes * _ESCAPED_CHAR,
        "project_conversation_ended": 2 * _OUTPUT,
    }


def _turns_read(policy: Policy, turn_chars: int) -> int:
    """Of turns at hand that a slower stage reads."""
    at_hand = policy.memory.buffer_turns + policy.memory.segment_turns
    return at_hand * _ASKED_TURN + min(ASKED_CHARS, at_hand * turn_chars) * _ESCAPED_CHAR


def _episode_bytes(policy: Policy) -> int:
    memory = policy.memory
    risky = sum(_ESCAPED_CHAR * len(topic) + 16 for topic in policy.risk.risky_topics)
    summary = (memory.episode_sentences * (memory.sentence_chars + 1) + _ID_CHARS) * _ESCAPED_CHAR
    return _OUTPUT + summary + memory.key_topics * (_TOPIC + 8) + risky


def _summary_chars(policy: Policy) -> int:
    memory = policy.memory
    return max(memory.summary_chars, memory.summary_sentences * (memory.sentence_chars + 1))


def fitting_dead_letter(letter: DeadLetter) -> DeadLetter:
    """The letter as its topic can take it: whole if it fits, else without original bytes, and it says so.

    A compressed record can be many times larger than the limit of the topic it came from. What is left out stands in
    that topic, at the letter's place, while its retention lasts.
    """
    if _letter_bytes(letter) <= DEAD_LETTER_BYTES:
        return letter
    sizes = f"value {len(letter.value or b'')} bytes, key {len(letter.key or b'')} bytes"
    return msgspec.structs.replace(
        letter,
        value=None,
        headers=[],
        key=letter.key if letter.key is not None and len(letter.key) <= KIB else None,
        detail=f"{letter.detail} (too large to keep here: {sizes}; the original stands in the source topic)",
    )


def _letter_bytes(letter: DeadLetter) -> int:
    """As JSON in a record: base64 of everything, and the key once more as the record's own."""
    raw = len(letter.value or b"") + 2 * len(letter.key or b"")
    raw += sum(len(name) * 5 + len(value or b"") + 16 for name, value in letter.headers)
    return raw * 4 // 3 + 2 * KIB + _ESCAPED_CHAR * len(letter.detail)
