"""How large everything of a project can get, from the policy alone; as `models.session.bounds` for sessions.

One event that may change any number of items stops changing further ones beyond `project_state.EVENT_STATE_BYTES`:

| event | the rest |
|---|---|
| an erasure, accesses | with the event's next steps, each a write of its own (`models.project.fold.fold_step`) |
| a consolidation | with the project's next events |
| what is said in one message | is left out |
| an import | is as large as its record |
"""

from __future__ import annotations

from models.policy import Policy
from models.policy.project import LongTermPolicy, NarrativePolicy
from models.project.outputs import DETAIL_CHARS
from models.session.bounds import KIB

_CHAR, _ESCAPED_CHAR = 4, 6
_NAME_CHARS = 256
_ITEM_ID = 64 + 4
_OUTPUT = 10 * KIB
"""Ids, names and places, and the topic's own name."""
_PARTITIONS = 1_000
"""Of `turns.v1`, at the most."""
_SEEN = 24 + 128 * 6
_TAG_CHARS, _TYPE_CHARS = 64, 64
_NUMBERS = KIB
"""Of an item: its numbers, times, marks and its fields' names."""
_REVISION, _SOURCE, _EDGE = 128, 96, 160
_DOUBTS = 16 * 64
_WATCH = 8 * KIB
_GROWTH = 2 * KIB
"""Of a head, by one event."""


def largest_project_part_bytes(policy: Policy) -> dict[str, int]:
    """Part of a project's entities → its largest value."""
    return {
        "head": 4 * KIB
        + _PARTITIONS * _SEEN
        + (policy.projects.consolidation.named + 1) * _ITEM_ID
        + policy.projects.long_term.results * _NAME_CHARS * 2 * _CHAR,
        **_items(policy, _CHAR),
        "results": policy.projects.long_term.results * ((DETAIL_CHARS + 2 * _NAME_CHARS) * _CHAR + 128),
        "message": policy.projects.short_term.message_chars * _CHAR + 2 * KIB,
        "watch": _WATCH,
        "silent": policy.projects.short_term.conversations * 40,
        "subject": 256 * _ITEM_ID,
        "confidences": policy.projects.long_term.pending * (_ITEM_ID + 10),
    }


def largest_project_output_bytes(policy: Policy) -> dict[str, int]:
    """Kind of output → its largest record; of items by their kind."""
    projects = policy.projects
    results = projects.long_term.results * ((DETAIL_CHARS + 2 * _NAME_CHARS) * _ESCAPED_CHAR + 128)
    items = {kind: _OUTPUT + size for kind, size in _items(policy, _ESCAPED_CHAR).items()}
    return {
        **items,
        "project_changed": _OUTPUT + results + _PARTITIONS * 40,
        "project_consolidated": _OUTPUT + (projects.consolidation.named + 2 * projects.narrative.most) * _ITEM_ID,
        "project_audited": _OUTPUT + 3 * _NAME_CHARS * _ESCAPED_CHAR,
    }


def _items(policy: Policy, char: int) -> dict[str, int]:
    short, long = policy.projects.short_term, policy.projects.long_term
    pending = long.content_chars * char + _DOUBTS * char + _labels(long, char)
    return {
        "memory": _memory(long, char),
        "episode": _episode(policy.projects.narrative, char),
        "chunk": _NUMBERS
        + (max(short.summary_chars, short.merged_summary_chars) + _NAME_CHARS) * char
        + max(short.key_topics, short.merged_key_topics) * (_NAME_CHARS * char + 4),
        "conversation": _NUMBERS
        + (2_000 + 2 * _NAME_CHARS) * char
        + 2 * short.named * _ITEM_ID
        + short.recent_messages * 18
        + (short.max_chunks + 1) * 16,
        "pending": _NUMBERS + pending + _SOURCE + 3 * _NAME_CHARS * char,
    }


def _memory(policy: LongTermPolicy, char: int) -> int:
    return (
        _NUMBERS
        + _labels(policy, char)
        + (policy.history + 1) * (policy.content_chars * char + _REVISION)
        + policy.sources * (_SOURCE + 3 * _NAME_CHARS * char)
        + policy.relationships * (_EDGE + 2 * _ITEM_ID + _TYPE_CHARS)
    )


def _labels(policy: LongTermPolicy, char: int) -> int:
    """Category, subject and tags."""
    return (64 + 128) * char + policy.tags * (_TAG_CHARS * char + 4)


def _episode(policy: NarrativePolicy, char: int) -> int:
    texts = policy.title_chars + 2 * policy.summary_chars + policy.context_chars + _NAME_CHARS
    return (
        _NUMBERS
        + texts * char
        + policy.participants * (_NAME_CHARS * char + 4)
        + (policy.linked + policy.most) * _ITEM_ID
    )
