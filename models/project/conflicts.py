"""Conflict rules between memories of a project, and which of them belong together. Pure.

| two memories | then |
|---|---|
| decisions of one subject; preferences of one user and subject | rivals: the newer supersedes the older |
| … of which one or both are denials | rivals if one denies what the other says: "no MongoDB" leaves "PostgreSQL" |
| … that were said at the same moment | no rivals: one message may decide two things of a subject |
| constraints, goals, facts, entities, procedures | never rivals: several of one subject hold side by side |
| any two that cannot both be followed (`stance.contradicting`), valid at once | contradict, and both stay valid |
| … but preferences of different users | nothing |
| another subject, or none | nothing: unrelated memories never retire each other |
| most tags in common | related, as strongly as their tags overlap |
"""

from __future__ import annotations

from typing import Final

from models.events.project_items import MemoryType, ProjectMemory
from models.language.contradiction import contradicting, denies, opposed
from models.project.kept_memories import holder

SUPERSEDING: Final = frozenset({MemoryType.DECISION, MemoryType.PREFERENCE})
"""Types of which a newer memory of the same subject closes the older one."""


def group_of(memory: ProjectMemory) -> str:
    """Name of the list of memories of its type and subject, and holder if it has one; empty without a subject."""
    return group_named(memory.type, memory.subject, holder(memory)) if memory.subject else ""


def group_named(memory_type: MemoryType, subject: str, holder_id: str) -> str:
    """Name of a group (`group_of`)."""
    return f"{memory_type.value}/{holder_id}/{subject}"


def supersedes(newer: ProjectMemory, older: ProjectMemory) -> bool:
    """Whether one closes the other, both of one group."""
    if newer.type not in SUPERSEDING or newer.valid_from <= older.valid_from:
        return False
    if denies(newer.content) or denies(older.content):
        return opposed(newer.content, older.content)
    return True


def contradict(one: ProjectMemory, other: ProjectMemory) -> bool:
    """Whether both hold at some time and cannot both be followed."""
    personal = MemoryType.PREFERENCE in {one.type, other.type}
    if personal and one.sources and other.sources and one.sources[0].user_id != other.sources[0].user_id:
        return False
    return overlap(one, other) and contradicting(one.content, other.content)


def tag_overlap(one: ProjectMemory, other: ProjectMemory) -> float:
    """Share of the tags of both that both have (Jaccard), 0-1."""
    a, b = set(one.tags), set(other.tags)
    return len(a & b) / len(a | b) if a and b else 0.0


def overlap(one: ProjectMemory, other: ProjectMemory) -> bool:
    """Whether both hold at some time."""
    return (one.valid_until is None or other.valid_from < one.valid_until) and (
        other.valid_until is None or one.valid_from < other.valid_until
    )
