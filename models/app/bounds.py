"""How large everything of a space of memories can get, from the policy alone."""

from __future__ import annotations

from models.app.memory import FACTS_CHARS, MOST_SHORT_IDS, SHORT_ID, TAG_CHARS
from models.policy import Policy
from models.session.bounds import KIB

_CHAR, _ESCAPED_CHAR = 4, 6
_ID, _ESCAPED_ID = KIB, 256 * _ESCAPED_CHAR
_OUTPUT = 8 * KIB
"""Ids, names and places, and the topic's own name."""
_PARTITIONS = 1_000
"""Of `turns.v1`, at the most."""
_SEEN = 24 + MOST_SHORT_IDS * SHORT_ID
_RESULT_CHARS, _RESULT = 64, 96
_NUMBERS = 256
"""Of a memory: its numbers, times and marks, but for the numbers of what contradicts it."""
_NUMBER = 18
_TURN = 64
_REASON_CHARS = 400
"""Of the rules, with all numbers at their longest."""
_GROWTH = KIB
"""Of a head, by one event: an outcome of a command, or what was seen of a partition."""


def largest_space_part_bytes(policy: Policy) -> dict[str, int]:
    """Part of a space → its largest value."""
    apps, memory = policy.apps, policy.memory
    kept = (
        apps.most_content_chars * _CHAR
        + apps.tags * (TAG_CHARS * _CHAR + 3)
        + (apps.related + apps.shared_with + 3) * _ID
        + apps.most * 9
        + MOST_SHORT_IDS * SHORT_ID
        + FACTS_CHARS * _CHAR
        + _NUMBERS
    )
    return {
        "head": 3 * KIB + _PARTITIONS * _SEEN + apps.results * (_RESULT_CHARS * _CHAR + _RESULT),
        "memory": kept,
        "candidate": kept,
        "waiting": _OUTPUT + _conversation(policy, _CHAR) + memory.key_topics * _ID,
    }


def largest_space_output_bytes(policy: Policy) -> dict[str, int]:
    """Kind of output → its largest record."""
    apps = policy.apps
    content = apps.most_content_chars * _ESCAPED_CHAR
    to_keep = content + _NUMBERS
    conversation = _OUTPUT + _conversation(policy, _ESCAPED_CHAR)
    reason = max(_REASON_CHARS, apps.most_content_chars) * _ESCAPED_CHAR
    return {
        "memory_requested": conversation + content,
        "compaction_requested": _OUTPUT + (apps.most + 1) * to_keep,
        "app_memory_changed": _OUTPUT
        + content
        + apps.tags * (TAG_CHARS * _ESCAPED_CHAR + 4)
        + (apps.related + apps.shared_with) * (_ESCAPED_ID + 4)
        + apps.most * _NUMBER,
        "app_memories_changed": _OUTPUT + apps.results * (_RESULT_CHARS * _ESCAPED_CHAR + _RESULT),
        "app_memories_compacted": _OUTPUT + (2 * apps.most + 1) * to_keep + content + reason + _ESCAPED_ID,
        "app_memory_skipped": _OUTPUT,
        "app_memory_audited": _OUTPUT + 2 * _ESCAPED_ID,
    }


def _conversation(policy: Policy, char: int) -> int:
    """What is told of a conversation, its topics aside."""
    apps, memory = policy.apps, policy.memory
    summary = memory.episode_sentences * (memory.sentence_chars + 1) * char
    notables = apps.notables * (apps.notable_chars * char + 2 * _TURN)
    turns = (memory.buffer_turns + memory.segment_turns) * (apps.asked_turn_chars * char + _TURN)
    return summary + notables + turns
