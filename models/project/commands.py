"""Commands of people on project memory. Each one is audited and answered, also if it changes nothing."""

from __future__ import annotations

import msgspec

from models.events import (
    ConversationStatusSet,
    DeedResult,
    ManualProjectCommand,
    MemorySource,
    PendingFactDecided,
    ProjectImported,
    ProjectMemoryAdded,
    ProjectMemoryDeleted,
    ProjectMemoryEdited,
    RelationshipSet,
)
from models.events.project import CommandOutcome
from models.project.imports import Import
from models.project.kept_memories import New
from models.project.work import Work


class CommandFold:
    """Commands by hand, while one event is folded."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def take(self, command: ManualProjectCommand) -> None:
        """Carry it out, audit it and answer it."""
        result = msgspec.structs.replace(self._carry_out(command), request_id=command.request_id)
        self._work.emission.answered(str(command.__struct_config__.tag), command.by, result)

    def _carry_out(self, command: ManualProjectCommand) -> DeedResult:
        long_term = self._work.learning.long_term
        match command:
            case ProjectMemoryAdded():
                result = self._add(command)
            case ProjectMemoryEdited():
                result = _changed(command.memory_id, *long_term.edit(command))
            case ProjectMemoryDeleted():
                gone = long_term.delete(command.memory_id, "deleted")
                result = _changed(command.memory_id, "done" if gone else "not_found")
            case RelationshipSet():
                result = _changed(command.source_id, *long_term.relate(command))
            case PendingFactDecided():
                result = self._decide(command)
            case ConversationStatusSet():
                result = self._set_status(command)
            case ProjectImported():
                result = Import(self._work).take(command)
            case _:
                raise AssertionError(command)
        return result

    def _add(self, command: ProjectMemoryAdded) -> DeedResult:
        new = New(
            type=command.memory_type,
            content=command.content.strip(),
            category=command.category,
            tags=command.tags,
            subject=command.subject.strip(),
            importance=command.importance,
            source=MemorySource(said_at=command.timestamp, by="hand"),
            valid_from=command.valid_from or command.timestamp,
            valid_until=command.valid_until,
        )
        refused = self._work.learning.long_term.refusal(new)
        if refused is not None:
            return _result(refused[0], detail=refused[1])
        memory_id, outcome = self._work.learning.long_term.add(new)
        return _changed(memory_id, outcome)

    def _decide(self, command: PendingFactDecided) -> DeedResult:
        kept = self._work.state.pending.get(command.pending_id)
        if kept is None:
            return _result("not_found", command.pending_id)
        if not command.promoted:
            self._work.learning.drop(command.pending_id, "deleted")
            return _result("done", command.pending_id, "", 1)
        memory_id, outcome = self._work.learning.promote(kept.fact)
        return _changed(memory_id or command.pending_id, outcome)

    def _set_status(self, command: ConversationStatusSet) -> DeedResult:
        state = self._work.state.conversation(command.conversation_id)
        if state is not None:
            changed = self._work.talk.set_status(state, command.status, command.timestamp, command.summary)
            return _result("done" if changed else "unchanged", command.conversation_id, "", int(changed))
        if command.status != "active":
            return _result("not_found", command.conversation_id)
        self._work.talk.begin(self._work.talk.started(command.conversation_id, command.timestamp))
        return _result("done", command.conversation_id, "", 1)


def _changed(item_id: str, outcome: CommandOutcome, detail: str = "") -> DeedResult:
    return _result(outcome, item_id, detail, int(outcome == "done"))


def _result(outcome: CommandOutcome, item_id: str = "", detail: str = "", count: int = 0) -> DeedResult:
    return DeedResult(request_id="", outcome=outcome, item_id=item_id, detail=detail, count=count)
