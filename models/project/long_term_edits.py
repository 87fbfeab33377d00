"""Manual edits of long-term memories: put right, expire, archive, restore, relate, bring back from a file."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

import msgspec

from models.events.project import CommandOutcome, ItemCause, ProjectMemoryEdited, RelationshipSet
from models.events.project_items import SUPERSEDES, ProjectMemory
from models.project.edges import relationship
from models.project.intervals import overlap
from models.project.kept_memories import bounded_sources, canonical, decay_at
from models.project.secondary_index import IndexedMemories, operation
from models.project.shards import StoredMemory
from models.text.words import estimate_tokens

Outcome = tuple[CommandOutcome, str]
"""And why it was refused, without any text; empty if it was not."""
_DONE: Final[Outcome] = ("done", "")
_UNCHANGED: Final[Outcome] = ("unchanged", "")


class Edits(IndexedMemories):
    """Commands on memories that are being changed."""

    @operation
    def edit(self, command: ProjectMemoryEdited) -> Outcome:
        """Put a memory right. What changes in content, importance or validity leaves a revision in its history.

        `reopened` takes back what closed it: one that was superseded by itself leaves its subject, so that nothing
        of it closes the memory again. A restored one counts as accessed.
        """
        kept = self.get(command.memory_id)
        if kept is None:
            return "not_found", f"{command.memory_id} is not kept"
        refused = next(self._objections(kept, command), None)
        if refused is not None:
            return refused
        before = kept.memory
        ends = None if command.reopened else (command.valid_until or kept.ends)
        if command.reopened and before.closed_by:
            kept = self._set_free(kept)
        memory = self._edited(kept.memory, command)
        if memory == before and ends == kept.ends:
            return _UNCHANGED
        cause: ItemCause = "edited"
        if memory.archived != before.archived:
            cause = "archived" if memory.archived else "restored"
        group = self.group(kept.memory, back_to=min(before.valid_from, memory.valid_from))
        kept = self._replace(kept, msgspec.structs.replace(kept, memory=memory, ends=ends), cause, group)
        if memory.content != before.content:
            self.forget_contradictions(memory.id)
            self.relate_new(self.get(memory.id) or kept)
        return _DONE

    def _objections(self, kept: StoredMemory, command: ProjectMemoryEdited) -> Iterator[Outcome]:
        policy, memory = self.policy, kept.memory
        if command.content is not None:
            if not command.content.strip():
                yield "invalid", "content is empty; delete the memory instead"
            if len(command.content) > policy.content_chars:
                yield (
                    "too_long",
                    f"content has {len(command.content)} characters, at most {policy.content_chars} are kept",
                )
            if (twin := self._twin(msgspec.structs.replace(memory, content=command.content))) is not None:
                yield "invalid", f"{twin.memory.id} says so already; delete one of the two"
        if command.tags is not None and len(command.tags) > policy.tags:
            yield "too_many", f"{len(command.tags)} tags, at most {policy.tags} are kept"
        if command.reopened and command.valid_until is not None:
            yield "invalid", "reopened and valid_until exclude each other"
        begin = command.valid_from or memory.valid_from
        end = None if command.reopened else (command.valid_until or memory.valid_until)
        if end is not None and end <= begin:
            yield "invalid", "valid_until must be later than valid_from; delete the memory if it never held"
        if memory.closed_by and memory.valid_until is not None and end is not None and end > memory.valid_until:
            yield "invalid", f"{memory.closed_by} superseded it before; reopen it first, or edit that one"
        if command.valid_from is not None and not self.may_begin(kept, command.valid_from):
            yield "invalid", "valid_from would turn round a relationship supersedes that was made by hand"

    def _twin(self, memory: ProjectMemory) -> StoredMemory | None:
        """Another memory that says the same while it holds."""
        same = (each for each in self.same(memory) if each.memory.id != memory.id)
        return next((each for each in same if overlap(each.memory, memory)), None)

    def _edited(self, memory: ProjectMemory, command: ProjectMemoryEdited) -> ProjectMemory:
        known: dict[str, object] = {}
        if command.content is not None and command.content != memory.content:
            known |= {"content": command.content, "tokens": estimate_tokens(command.content)}
        if command.importance is not None and command.importance != memory.importance:
            known["importance"] = command.importance
        if command.valid_from is not None and command.valid_from != memory.valid_from:
            known["valid_from"] = command.valid_from
        if known:
            memory = self.revised(memory, **known)
        other = {
            "category": memory.category if command.category is None else command.category,
            "tags": memory.tags if command.tags is None else list(dict.fromkeys(command.tags)),
            "archived": memory.archived if command.archived is None else command.archived,
        }
        if all(getattr(memory, name) == value for name, value in other.items()):
            return memory
        restored = memory.archived and not other["archived"]
        now = max(self.now, memory.updated_at)
        memory = msgspec.structs.replace(memory, **other, updated_at=now)
        if restored:
            memory = msgspec.structs.replace(memory, last_accessed_at=max(now, memory.last_accessed_at))
            memory = msgspec.structs.replace(memory, decay_factor=decay_at(memory, now, self.policy))
        return memory

    def _set_free(self, kept: StoredMemory) -> StoredMemory:
        """Take a memory out of its subject, and from what superseded it by hand."""
        sources = [source.memory.id for source, _ in self.incoming(kept, SUPERSEDES)]
        for source_id in sources:
            self.unlink(source_id, kept.memory.id, SUPERSEDES)
        kept = self.get(kept.memory.id) or kept
        group = self._group(kept.memory)
        self.delist(kept)
        freed = msgspec.structs.replace(kept.memory, subject="")
        kept = self.put(msgspec.structs.replace(kept, memory=freed), "edited")
        self.enlist(kept)
        self.settle(group, group)
        return self.get(freed.id) or kept

    @operation
    def relate(self, command: RelationshipSet) -> Outcome:
        """Relate two memories, give it another strength, or take it back. `supersedes` closes what it leads to.

        What was superseded by itself is set free when the relationship is taken back: it leaves its subject.
        """
        source, target = self.get(command.source_id), self.get(command.target_id)
        if source is None or target is None:
            missing = command.source_id if source is None else command.target_id
            return "not_found", f"{missing} is not kept"
        if command.strength is None:
            return self._part(source, target, command.relation)
        refused = next(self._objections_to(source.memory, target.memory, command.relation), None)
        if refused is not None:
            return refused
        known = relationship(source.memory, command.target_id, command.relation)
        if known is not None and (known.strength, known.origin) == (command.strength, "hand"):
            return _UNCHANGED
        if not self.link(command.source_id, command.target_id, command.relation, command.strength, "hand"):
            return "too_many", f"a memory has at most {self.policy.relationships} relationships each way"
        if command.relation == SUPERSEDES:
            self._settle_by_hand(command.target_id)
        return _DONE

    def _objections_to(self, source: ProjectMemory, target: ProjectMemory, name: str) -> Iterator[Outcome]:
        if source.id == target.id:
            yield "invalid", "a memory has no relationship to itself"
        cycle = self.closes_a_cycle(source.id, target.id, name)
        if cycle:
            yield "invalid", f"{name} would close a cycle: {' → '.join(cycle)}"
        if name == SUPERSEDES and source.valid_from <= target.valid_from:
            yield "invalid", f"{source.id} holds no later than {target.id}, so it cannot supersede it"

    def _part(self, source: StoredMemory, target: StoredMemory, name: str) -> Outcome:
        source_id, target_id = source.memory.id, target.memory.id
        known = relationship(source.memory, target_id, name)
        if known is None:
            return _UNCHANGED
        if name == SUPERSEDES and target.memory.closed_by == source_id and known.origin == "rules":
            target = self._set_free(target)
        self.unlink(source_id, target_id, name)
        if name == SUPERSEDES:
            self._settle_by_hand(target_id)
        return _DONE

    def _settle_by_hand(self, memory_id: str) -> None:
        kept = self.get(memory_id)
        if kept is not None:
            self.settle([kept], self._group(kept.memory), by_hand=True)

    def may_begin(self, kept: StoredMemory, at: datetime) -> bool:
        """True if relationships by hand stay in order when a memory begins at this time."""
        memory = kept.memory
        closers = [source for source, edge in self.incoming(kept, SUPERSEDES) if edge.origin != "rules"]
        if any(source.memory.valid_from <= at for source in closers):
            return False
        by_people = [each for each in memory.relationships if each.type == SUPERSEDES and each.origin != "rules"]
        closed = (self.get(each.target_id) for each in by_people)
        return all(other is None or other.memory.valid_from < at for other in closed)

    @operation
    def put_back(self, memory: ProjectMemory) -> CommandOutcome:
        """A memory as it was saved, by id; what bounds it now bounds it too. Nothing is revised by that.

        Where another says the same while it holds, that one is strengthened instead: there is never a duplicate.
        """
        policy, known = self.policy, self.get(memory.id)
        if known is not None and known.memory == memory:
            return "unchanged"
        ends_first = memory.valid_until is not None and memory.valid_until <= memory.valid_from
        contents = [memory.content, *(past.content for past in memory.history)]
        refusals: tuple[tuple[bool, CommandOutcome], ...] = (
            (known is None and self.memories.count >= policy.most, "too_many"),
            (max(map(len, contents)) > policy.content_chars, "too_long"),
            (not memory.content.strip() or ends_first, "invalid"),
        )
        refused = next((outcome for bad, outcome in refusals if bad), None)
        if refused is not None:
            return refused
        changes = known is None or canonical(known.memory.content) != canonical(memory.content)
        if changes and (twin := self._twin(memory)) is not None:
            return "invalid" if known is not None else self._join(twin, memory)
        if known is not None:
            self.delist(known)
            for edge in known.memory.relationships:
                self.unlink(memory.id, edge.target_id, edge.type)
            known = self.get(memory.id) or known
        outgoing = [each for each in memory.relationships if each.target_id != memory.id][: policy.relationships]
        waiting = tuple(each for each in outgoing if self.get(each.target_id) is None)
        closer = memory.closed_by if self.get(memory.closed_by) is not None else ""
        saved = msgspec.structs.replace(
            memory,
            tags=memory.tags[: policy.tags],
            sources=memory.sources[: policy.sources],
            history=memory.history[-policy.history :] if policy.history else [],
            relationships=[],
            closed_by=closer,
        )
        kept = StoredMemory(
            memory=saved,
            slot=self.memories.free_slot() if known is None else known.slot,
            incoming=() if known is None else known.incoming,
            ends=None if closer else memory.valid_until,
            waiting=waiting,
        )
        group = self._group(saved)
        self.put(kept, "imported")
        self.enlist(kept)
        for edge in outgoing:
            if edge not in waiting and not self.closes_a_cycle(memory.id, edge.target_id, edge.type):
                self.make(memory.id, edge)
        self.join_waiting(memory.id)
        made = self.get(memory.id) or kept
        self.settle_group(memory.id, group)
        for closed in [each.target_id for each in made.memory.relationships if each.type == SUPERSEDES]:
            self._settle_by_hand(closed)
        self._settle_by_hand(memory.id)
        return "done"

    def _join(self, kept: StoredMemory, saved: ProjectMemory) -> CommandOutcome:
        """What a saved memory adds to one that says the same; once."""
        before = memory = kept.memory
        if saved.importance > memory.importance:
            memory = self.revised(memory, importance=saved.importance)
        more = [each for each in saved.sources if each not in memory.sources]
        memory = msgspec.structs.replace(
            memory,
            mentions=max(memory.mentions, saved.mentions),
            confidence=max(memory.confidence, saved.confidence),
            sources=bounded_sources([*memory.sources, *more], self.policy.sources),
        )
        if memory == before:
            return "unchanged"
        self.put(msgspec.structs.replace(kept, memory=memory), "imported")
        return "done"
