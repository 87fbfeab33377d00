"""Consolidation of long-term memories (Memory Consolidation), step by step over the shards of a project.

| a memory | then |
|---|---|
| whose stored decay factor is off by `decay_change` | it is brought up to date |
| neither made, said again nor put right since `after_days`; importance × decay below `archive_below` | archived |
| … of a type of `stays_in_force`, which holds | stays |
| one of more than `long_term.most` | the weakest of each shard go, archived ones first |

Archived memories stay, are found only if asked for, and come back by hand or when they are said again.

A consolidation is due when `every` has passed since the last one ended, or since the project began, by the log's clock.
Each event of the project does a step, and the memory worker sends `ProjectWorkDue` where nothing else comes. One that
was requested runs with its command as far as one write takes it, and is answered when it is done.
"""

from datetime import timedelta
from typing import Final, Literal

import msgspec

from models.events import ConsolidationAsked, DeedResult, ProjectConsolidated
from models.events.project_items import ConsolidationFigures
from models.policy.project import ProjectPolicy
from models.project.kept_memories import decay_at
from models.project.long_term import LongTerm
from models.project.shards import StoredMemory
from models.project.state import AskedRun, Consolidation
from models.project.store import SHARDS
from models.project.validity import is_valid
from models.project.work import Work
from models.state.entity import same_fields

_ASKED: Final = "consolidation_asked"
_AT_ONCE: Final = 20


def step(long_term: LongTerm, run: Consolidation, policy: ProjectPolicy, most: int) -> bool:
    """Look at the next memories, at most so many; gives whether all shards are done."""
    memories, left = long_term.memories, most
    while run.shelf < SHARDS:
        waiting = [memory_id for memory_id in memories.shard_ids(run.shelf) if memory_id > run.after]
        for memory_id in waiting[:left]:
            kept = memories.get(memory_id)
            if kept is not None:
                _look_at(kept, long_term, run, policy)
            run.after = memory_id
        left -= len(waiting[:left])
        if left == 0 and run.after != (waiting[-1] if waiting else run.after):
            return False
        _make_room(long_term, run, policy)
        run.shelf, run.after = run.shelf + 1, ""
        if left == 0:
            break
    return run.shelf == SHARDS


def _look_at(kept: StoredMemory, long_term: LongTerm, run: Consolidation, policy: ProjectPolicy) -> None:
    memory, rules, now = kept.memory, policy.consolidation, long_term.now
    run.looked_at += 1
    factor = decay_at(memory, now, policy.long_term)
    old = max(memory.created_at, memory.updated_at) < now - timedelta(days=rules.after_days)
    in_force = memory.type in rules.stays_in_force and is_valid(memory, now)
    archived = memory.archived or (old and not in_force and memory.importance * factor < rules.archive_below)
    off = abs(factor - memory.decay_factor) >= rules.decay_change
    if off or archived != memory.archived:
        long_term.decayed(kept, factor, archived=archived)
    run.decay_updated += off
    if archived and not memory.archived:
        run.archived += 1
        run.tokens_reclaimed += memory.tokens
        run.archived_ids = [*run.archived_ids, memory.id][: rules.named]


def _make_room(long_term: LongTerm, run: Consolidation, policy: ProjectPolicy) -> None:
    """What is too much goes evenly from the shards that are left."""
    surplus = long_term.memories.count - policy.long_term.most
    for _ in range(-(-surplus // (SHARDS - run.shelf)) if surplus > 0 else 0):
        if long_term.displace(run.shelf) is not None:
            run.displaced += 1


class ProjectUpkeep(Work):
    """Consolidations of a project, while one event is folded."""

    def consolidation_asked(self, command: ConsolidationAsked) -> None:
        """Consolidate on request; one that is under way counts. Of too many waiting requests the latest is refused."""
        if self._head.run is None:
            self._begin_run("asked")
        if len(self._head.asked) < self._policy.long_term.results:
            self._head.asked.append(AskedRun(command.request_id, command.by))
        else:
            detail = f"{len(self._head.asked)} wait for the consolidation that is under way"
            result = DeedResult(request_id=command.request_id, outcome="too_many", detail=detail)
            self.answered(_ASKED, command.by, result)
        while self._head.run is not None and not self._state.is_full:
            self._step_run(self._head.run)

    def consolidate(self) -> None:
        """A step of the one that is due or under way."""
        due = self._head.due(self._policy)
        if self._head.run is None and due is not None and due <= self.now:
            self._begin_run("scheduled")
        if self._head.run is not None and not self._state.is_full:
            self._step_run(self._head.run)

    def _begin_run(self, cause: Literal["scheduled", "asked"]) -> None:
        self._head.runs += 1
        self._head.run = Consolidation(run=self._head.runs, started_at=self.now, cause=cause)

    def _step_run(self, run: Consolidation) -> None:
        """Look at as many memories as one event may, in pieces, since each may be large."""
        until = run.looked_at + self._policy.consolidation.step_memories
        done = False
        while not done and run.looked_at < until and not self._state.is_full:
            most = min(_AT_ONCE, until - run.looked_at)
            done = step(self.long_term, run, self._policy, most)
        if done:
            self._end_run(run)

    def _end_run(self, run: Consolidation) -> None:
        """Merge episodes, drop what was pending for long, emit and answer."""
        merged, saved_tokens = self.merge_episodes()
        dropped = self._drop_pending()
        event = self.emit(
            ProjectConsolidated,
            project_id=self._project_id,
            **same_fields(run, ProjectConsolidated, "archived_ids", "tokens_reclaimed"),
            memories_looked_at=run.looked_at,
            memories_archived=run.archived,
            archived_ids=run.archived_ids[: self._policy.consolidation.named],
            episodes_merged=sum(len(each) - 1 for each in merged),
            merged=merged,
            pending_dropped=dropped,
            tokens_reclaimed=run.tokens_reclaimed + saved_tokens,
        )
        self._changed = True
        self._head.run, self._head.consolidated_at = None, self.now
        self._head.consolidated = msgspec.convert(event, ConsolidationFigures, from_attributes=True)
        asked, self._head.asked = self._head.asked, []
        count = event.decay_updated + event.memories_archived + event.episodes_merged + event.pending_dropped
        for each in asked:
            result = DeedResult(request_id=each.request_id, outcome="done", count=count)
            self.answered(_ASKED, each.by, result)

    def _drop_pending(self) -> int:
        """Facts that waited too long go: those that came first."""
        oldest = self.now - timedelta(days=self._policy.long_term.pending_days)
        late = [kept.fact.id for kept in self._state.pending.all() if kept.fact.extracted_at < oldest]
        for pending_id in late:
            self.drop_pending(pending_id, "displaced")
        return len(late)
