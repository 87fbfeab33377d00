"""How large everything of a user's memory can get, from the policy alone; as `models.session.bounds` for sessions."""

from __future__ import annotations

from models.policy import Policy
from models.session.bounds import KIB, MIB
from models.user.facts import RETRACTIONS

COMMAND_RECORD_BYTES = 2 * MIB - 64 * KIB
"""Record of `commands.v1` and `requests.v1`; both take 2 MiB."""
_RECORD = 80
"""A changelog record beside its key and value."""
_PARTITIONS = 1_000
"""Of `turns.v1`, at the most."""
_SEEN = 16
_HEAD = KIB + 2 * KIB + _PARTITIONS * _SEEN
"""Ids, counters and what was seen; ids may be 256 characters of four bytes."""
_CHAR = 4
_ESCAPED_CHAR = 6
_ID = KIB
_ESCAPED_ID = 256 * _ESCAPED_CHAR
_VALUE_CHARS = 400
_KEY = 64
_TIMES = 48
_OUTPUT = 8 * KIB
"""Ids, names and places: five of a thousand bytes or more, and the topic's own name."""
_DIMS, _NUMBER = 4_096, 26


def largest_user_part_bytes(policy: Policy) -> dict[str, int]:
    """Part of a user → its largest value."""
    users = policy.users
    return {
        "head": _HEAD + users.waiting_episodes * _SEEN,
        "turn": users.turn_chars * _CHAR + _ID + 64,
        "fact": (users.facts.history + 1) * (_VALUE_CHARS * _CHAR + _TIMES) + 3 * _ID,
        "retractions": RETRACTIONS * (_VALUE_CHARS * _CHAR + _KEY + _TIMES) + 8,
    }


def largest_user_output_bytes(policy: Policy) -> dict[str, int]:
    """Kind of output → its largest record."""
    users = policy.users
    at_hand = (users.high_turns + users.keep_turns) * (_ESCAPED_ID + 64)
    topics = policy.memory.key_topics * (_ESCAPED_ID + 8)
    summary = max(users.summary_chars, users.summary_sentences * (policy.memory.sentence_chars + 1)) * _ESCAPED_CHAR
    return {
        "user_turn_added": _OUTPUT + policy.intake.max_content_bytes * _ESCAPED_CHAR,
        "episode_requested": _OUTPUT + users.high_turns * (users.asked_chars * _ESCAPED_CHAR + 64 + _ESCAPED_ID + 8),
        "facts_requested": _OUTPUT + users.facts.asked_chars * _ESCAPED_CHAR,
        "episode_compressed": _OUTPUT + at_hand + summary + topics + _DIMS * _NUMBER,
        "fact_changed": _OUTPUT + (users.facts.history + 1) * (_VALUE_CHARS * _ESCAPED_CHAR + 160),
        "user_memory_changed": _OUTPUT + at_hand + _PARTITIONS * 2 * _SEEN,
    }
