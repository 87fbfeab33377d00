"""Consolidation of long-term memories (Memory Consolidation), step by step over the shards of a project.

| a memory | then |
|---|---|
| whose stored decay factor is off by `decay_change` | it is brought up to date |
| made, and neither said again nor put right, before `after_days`; importance × decay below `archive_below` | archived |
| one of more than `long_term.most` | the weakest of each shard go, archived ones first |

Archived memories stay, are found only if asked for, and come back by hand or when they are said again.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct

from models.policy.project import ProjectPolicy
from models.project.kept_memories import decay_at
from models.project.long_term import LongTerm
from models.project.shards import ShardedMemories, StoredMemory
from models.project.store import SHARDS

Cause = Literal["scheduled", "asked"]


class Consolidation(Struct, kw_only=True):
    """A consolidation that is under way; changed in place with each step. Counts memories."""

    run: int
    cause: Cause
    started_at: datetime
    shelf: int = 0
    """The next memory to look at is in this shard (its stored name) …"""
    after: str = ""
    """… behind this one."""
    looked_at: int = 0
    decay_updated: int = 0
    archived: int = 0
    archived_ids: list[str] = []
    tokens_reclaimed: int = 0
    """Of the archived."""
    displaced: int = 0


def step(  # noqa: PLR0917 - what a step works on, and how far it goes
    memories: ShardedMemories, long_term: LongTerm, run: Consolidation, policy: ProjectPolicy, now: datetime, most: int
) -> bool:
    """Look at the next memories.

    Args:
        memories: The project's.
        long_term: The same, to change them.
        run: How far it is.
        policy: When what is archived.
        now: Broker time.
        most: Memories to look at; the rest is for the next steps.

    Returns:
        Whether all shards are done.
    """
    left = most
    while run.shelf < SHARDS:
        waiting = [memory_id for memory_id in memories.shard_ids(run.shelf) if memory_id > run.after]
        for memory_id in waiting[:left]:
            kept = memories.memory(memory_id)
            if kept is not None:
                _look_at(kept, long_term, run, policy, now)
            run.after = memory_id
        left -= len(waiting[:left])
        if left == 0 and run.after != (waiting[-1] if waiting else run.after):
            return False
        _make_room(memories, long_term, run, policy)
        run.shelf, run.after = run.shelf + 1, ""
        if left == 0:
            break
    return run.shelf == SHARDS


def _look_at(kept: StoredMemory, long_term: LongTerm, run: Consolidation, policy: ProjectPolicy, now: datetime) -> None:
    memory, rules = kept.memory, policy.consolidation
    run.looked_at += 1
    factor = decay_at(memory, now, policy.long_term)
    old = max(memory.created_at, memory.updated_at) < now - timedelta(days=rules.after_days)
    archived = memory.archived or (old and memory.importance * factor < rules.archive_below)
    off = abs(factor - memory.decay_factor) >= rules.decay_change
    if off or archived != memory.archived:
        long_term.decayed(kept, factor, archived=archived)
    run.decay_updated += off
    if archived and not memory.archived:
        run.archived += 1
        run.tokens_reclaimed += memory.tokens
        run.archived_ids = [*run.archived_ids, memory.id][: rules.named]


def _make_room(memories: ShardedMemories, long_term: LongTerm, run: Consolidation, policy: ProjectPolicy) -> None:
    """What is too much goes evenly from the shards that are left."""
    surplus = memories.count - policy.long_term.most
    for _ in range(-(-surplus // (SHARDS - run.shelf)) if surplus > 0 else 0):
        if long_term.displace(run.shelf) is not None:
            run.displaced += 1
