"""The two time axes of memories (Temporal Validity): when something held, and when that was known. Pure.

| asked | answer |
|---|---|
| valid at `t` | `valid_from <= t`, and no end or `t < valid_until` (project memory, `getValidAt`) |
| as known at `k` | what stood in the memory at `k`; nothing if it was not recorded by then |
| both | memories as they were known at `k`, of those the ones that held at `t` by what was known then |

A memory that was deleted or erased is not known at any time; one that was archived is, as everything.
"""

from datetime import datetime

import msgspec

from models.events.project_items import ProjectMemory
from models.state.entity import same_fields


def is_valid(memory: ProjectMemory, at: datetime) -> bool:
    """True if the memory held at a time, by what is known now."""
    return memory.valid_from <= at and (memory.valid_until is None or at < memory.valid_until)


def known_at(memory: ProjectMemory, at: datetime) -> ProjectMemory | None:
    """A memory as it was known at a time, None if it was not.

    Content, importance and validity are those of then; what was said later and relationships made later are left out.
    Of a history that was cut (`long_term.history`) the oldest state that is left stands for those before it.
    """
    if at < memory.created_at and at < memory.recorded_at and all(at < past.recorded_at for past in memory.history):
        return None
    if memory.recorded_at <= at or not memory.history:
        return _without_later(memory, at)
    stood = [past for past in memory.history if past.recorded_at <= at] or memory.history[:1]
    then = stood[-1]
    return _without_later(
        msgspec.structs.replace(
            memory,
            **same_fields(then, ProjectMemory),
            closed_by=memory.closed_by if then.valid_until == memory.valid_until else "",
            history=stood[:-1],
        ),
        at,
    )


def versions(memory: ProjectMemory) -> list[tuple[datetime, ProjectMemory]]:
    """What was known of a memory since when, the oldest first; last the memory itself."""
    since = [
        *(past.recorded_at for past in memory.history),
        *(each.created_at for each in memory.relationships),
        *(source.said_at for source in memory.sources),
    ]
    known: list[tuple[datetime, ProjectMemory]] = []
    for at in sorted({memory.created_at, memory.recorded_at, *since}):
        then = known_at(memory, at)
        if then is not None and not (known and known[-1][1] == then):
            known.append((at, then))
    return known


def _without_later(memory: ProjectMemory, at: datetime) -> ProjectMemory:
    relationships = [each for each in memory.relationships if each.created_at <= at]
    # A memory that was known was said, whatever the clock of whoever said it showed.
    sources = [each for each in memory.sources if each.said_at <= at] or memory.sources[:1]
    later = len(memory.sources) - len(sources)
    if not later and len(relationships) == len(memory.relationships):
        return memory
    mentions = max(1, memory.mentions - later)
    return msgspec.structs.replace(memory, relationships=relationships, sources=sources, mentions=mentions)
