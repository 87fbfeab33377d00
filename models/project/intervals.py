"""Validity intervals of a project's memories, and the conflict rules that end them. Pure.

| two memories | then |
|---|---|
| decisions of one subject; preferences of one user and subject | rivals: the newer supersedes the older |
| … of which one or both are denials | rivals if one denies the other: "no MongoDB" does not end "PostgreSQL" |
| … that were said at the same moment | no rivals: one message may contain two decisions on a subject |
| any decision, constraint, goal, fact of a date, sum, place, duration, with another value (`matters`) | rivals |
| other constraints, goals, facts; entities, procedures | never rivals: several on one subject are valid side by side |
| any two that cannot both be followed (`stance.contradicting`), valid at once | contradict, and both stay valid |
| … but preferences of different users | no effect |
| another subject, or none | no effect: unrelated memories never end each other |
| most tags in common | related, with the overlap of their tags as strength |

The end of a memory is computed from the stored memories: the earliest of its own end (`StoredMemory.ends`), the start
of the next memory that supersedes it, and the start of one that supersedes it by hand. `Intervals.settle` sets it,
with its relationships and history. So a late message takes its place in the past without changing other memories, and
a memory that a deleted one had ended is valid again, until the next rival.

A group's list has the latest `long_term.rivals` memories; earlier ones are found through what those supersede, and
move up when one leaves the list.
"""

import re
from collections.abc import Container, Iterable, Sequence
from datetime import datetime
from typing import Final

import msgspec

from models.events.project_items import SUPERSEDES, MemoryType, ProjectMemory
from models.language.contradiction import contradicting, denies, opposed, other_value
from models.project.edges import Edges, relationship
from models.project.kept_memories import holder
from models.project.shards import StoredMemory
from models.project.validity import is_valid

SUPERSEDING: Final = frozenset({MemoryType.DECISION, MemoryType.PREFERENCE})
"""Types of which a newer memory on the same subject ends the older one."""
_VALUED: Final = (MemoryType.DECISION, MemoryType.CONSTRAINT, MemoryType.GOAL, MemoryType.FACT)
"""Types that can state a date, sum, place or duration."""
_OF_ONE_VALUE = re.compile(r"\b(?:date|place|cost|duration|deadline|budget)\b")
"""Subjects on which only one statement can be valid at a time."""


def group_of(memory: ProjectMemory) -> str:
    """Name of the group of a memory: its type, subject and holder, if any; empty without a subject."""
    return group_named(memory.type, memory.subject, holder(memory)) if memory.subject else ""


def group_named(memory_type: MemoryType, subject: str, holder_id: str) -> str:
    """Name of a group (`group_of`)."""
    return f"{memory_type.value}/{holder_id}/{subject}"


def groups_of(memory: ProjectMemory) -> list[str]:
    """Names of all groups whose memories may be rivals of this one, its own first; empty if it can have none."""
    if not memory.subject:
        return []
    valued = memory.type in _VALUED and _OF_ONE_VALUE.search(memory.subject) is not None
    types = dict.fromkeys([memory.type, *(_VALUED if valued else [])])
    return [group_named(each, memory.subject, holder(memory)) for each in types if valued or each in SUPERSEDING]


def supersedes(newer: ProjectMemory, older: ProjectMemory) -> bool:
    """True if `newer` ends `older`, both of one group."""
    if newer.valid_from <= older.valid_from:
        return False
    if newer.type is not older.type or newer.type not in SUPERSEDING:
        return _OF_ONE_VALUE.search(newer.subject) is not None and other_value(newer.content, older.content)
    if denies(newer.content) or denies(older.content):
        return opposed(newer.content, older.content)
    return True


def contradict(one: ProjectMemory, other: ProjectMemory) -> bool:
    """True if both are valid at some time and cannot both be followed."""
    personal = MemoryType.PREFERENCE in {one.type, other.type}
    if personal and one.sources and other.sources and one.sources[0].user_id != other.sources[0].user_id:
        return False
    return overlap(one, other) and contradicting(one.content, other.content)


def tag_overlap(one: ProjectMemory, other: ProjectMemory) -> float:
    """Overlap of the tags of both (Jaccard), 0-1."""
    a, b = set(one.tags), set(other.tags)
    return len(a & b) / len(a | b) if a and b else 0.0


def overlap(one: ProjectMemory, other: ProjectMemory) -> bool:
    """True if both are valid at some time."""
    return (one.valid_until is None or other.valid_from < one.valid_until) and (
        other.valid_until is None or one.valid_from < other.valid_until
    )


FULL: Final = 1.0
"""Strength of a relationship that the rules set."""


class Intervals(Edges):
    """Intervals of the memories of a change."""

    def group(self, memory: ProjectMemory, *, back_to: datetime | None = None) -> list[StoredMemory]:
        """Possible rivals of a memory, by subject, type and holder (`groups_of`), without itself; oldest first.

        Args:
            memory: It need not be stored yet.
            back_to: Also find those that are no longer listed, back to this time, with memories that ended there.
        """
        names = groups_of(memory)
        listed = [each for name in names for each in self.memories.subject(name)]
        known = {each: kept for each in listed if (kept := self.get(each)) is not None}
        latest = list(known.values())
        while back_to is not None and latest:
            latest = self._superseded(names, [each for each in latest if each.memory.valid_from >= back_to], known)
            known |= {kept.memory.id: kept for kept in latest}
        return sorted((kept for kept in known.values() if kept.memory.id != memory.id), key=by_begin)

    def _superseded(
        self, names: Container[str], members: Iterable[StoredMemory], known: Container[str]
    ) -> list[StoredMemory]:
        """Further members of the groups that these memories supersede."""
        found = {
            edge.target_id: None for each in members for edge in each.memory.relationships if edge.type == SUPERSEDES
        }
        others = (self.get(target_id) for target_id in found if target_id not in known)
        return [kept for kept in others if kept is not None and group_of(kept.memory) in names]

    def list_in_group(self, kept: StoredMemory) -> None:
        """Insert a memory into the list of its group, by time."""
        name = group_of(kept.memory)
        if not name:
            return
        if kept.memory.type not in SUPERSEDING:
            self.listed(name, kept, self.policy.rivals)
            return
        alike = [each for each in self.group(kept.memory) if each.memory.type is kept.memory.type]
        members = sorted([*alike, kept], key=by_begin)
        ids = [each.memory.id for each in members][-self.policy.rivals :]
        self.memories.set_subject(name, ids)

    def unlist_from_group(self, memory: ProjectMemory) -> None:
        """Remove a memory from its group's list, while it has its relationships: they lead to the one that moves up."""
        name = group_of(memory)
        listed = self.memories.subject(name) if name else []
        if memory.id not in listed:
            return
        ids = [each for each in listed if each != memory.id]
        if memory.type in SUPERSEDING:
            members = [kept for each in listed if (kept := self.get(each)) is not None]
            following = max(self._superseded([name], members, listed), key=by_begin, default=None)
            ids = ids if following is None else [following.memory.id, *ids]
        self.memories.set_subject(name, ids)

    def split(self, group: Sequence[StoredMemory], draft: ProjectMemory) -> list[StoredMemory]:
        """Split memories that were stated both before and after the start of a rival; returns the group with the parts.

        The later statements become a separate memory, valid from their time; it is not listed yet.
        """
        result = list(group)
        for kept in group:
            if is_valid(kept.memory, draft.valid_from) and supersedes(draft, kept.memory):
                later = self._second_half(kept, draft.valid_from)
                if later is not None:
                    result = [self.get(each.memory.id) or each for each in result] + [later]
        return sorted(result, key=by_begin)

    def _second_half(self, kept: StoredMemory, at: datetime) -> StoredMemory | None:
        memory = kept.memory
        after = [source for source in memory.sources if source.by == "rules" and source.said_at > at]
        if not after:
            return None
        begin = min(source.said_at for source in after)
        before = [source for source in memory.sources if source not in after] or memory.sources
        now = self.now
        half = msgspec.structs.replace(
            memory,
            id=self.free_id(begin, memory.type, memory.content, holder(memory)),
            valid_from=begin,
            closed_by="",
            sources=after,
            mentions=len(after),
            relationships=[],
            history=[],
            recorded_at=now,
            created_at=now,
            updated_at=now,
        )
        first = msgspec.structs.replace(memory, sources=before, mentions=max(1, memory.mentions - len(after)))
        self.put(msgspec.structs.replace(kept, memory=first), "superseded")
        later = StoredMemory(memory=half, slot=self.memories.free_slot(), ends=kept.ends)
        return self.put(later, "created")

    def settle_group(self, memory_id: str, group: Sequence[StoredMemory]) -> None:
        """Set the ends of a memory and its group.

        Args:
            memory_id: The memory.
            group: The group before the memory was listed, which may have removed the oldest from the list.
        """
        kept = self.get(memory_id)
        members = sorted([*group, kept] if kept is not None else group, key=by_begin)
        self.settle(members, members)

    def settle(self, targets: Iterable[StoredMemory], group: Sequence[StoredMemory], *, by_hand: bool = False) -> None:
        """Set the ends of memories.

        Args:
            targets: The memories.
            group: Memories that may supersede them, by time.
            by_hand: Whether memories that supersede them by hand have changed.
        """
        for each in targets:
            kept = self.get(each.memory.id)
            if kept is not None:
                self._settle(kept, group, by_hand=by_hand)

    def _settle(self, kept: StoredMemory, group: Sequence[StoredMemory], *, by_hand: bool) -> None:
        memory = kept.memory
        closers = [each for each in group if supersedes(each.memory, memory)][:1]
        found = self._end(kept, closers)
        if found == (memory.valid_until, memory.closed_by) and not by_hand:
            return
        # A memory that is closed by hand is rare, and to know it takes a look at all that refer to it.
        by_people = [source for source, edge in self.incoming(kept, SUPERSEDES) if edge.origin != "rules"]
        closers += [source for source in by_people if source.memory.valid_from > memory.valid_from]
        end, closer = self._end(kept, closers)
        if (end, closer) != (memory.valid_until, memory.closed_by):
            self._close(kept, end, closer)

    @staticmethod
    def _end(kept: StoredMemory, closers: Sequence[StoredMemory]) -> tuple[datetime | None, str]:
        first = min(closers, key=by_begin, default=None)
        if first is None or (kept.ends is not None and kept.ends < first.memory.valid_from):
            return kept.ends, ""
        return first.memory.valid_from, first.memory.id

    def _close(self, kept: StoredMemory, end: datetime | None, closer: str) -> None:
        memory = kept.memory
        sooner = end is not None and (memory.valid_until is None or end < memory.valid_until)
        if end == memory.valid_until:
            closed = msgspec.structs.replace(memory, closed_by=closer)
        else:
            closed = self.revised(memory, valid_until=end, closed_by=closer)
        # An end that falls together with what supersedes it is that one's: an imported memory does not tell them apart.
        ends = None if closer and kept.ends == end else kept.ends
        self.put(
            msgspec.structs.replace(kept, memory=closed, ends=ends), "superseded" if sooner or closer else "restored"
        )
        if memory.closed_by and memory.closed_by != closer:
            source = self.get(memory.closed_by)
            edge = None if source is None else relationship(source.memory, memory.id, SUPERSEDES)
            if edge is not None and edge.origin == "rules":
                self.unlink(memory.closed_by, memory.id, SUPERSEDES)
        source = self.get(closer) if closer else None
        if source is not None and relationship(source.memory, memory.id, SUPERSEDES) is None:
            self.link(closer, memory.id, SUPERSEDES, FULL)


def by_begin(kept: StoredMemory) -> tuple[datetime, str]:
    """Sort key of memories by time."""
    return kept.memory.valid_from, kept.memory.id
