"""Commands of people on project memory. Each one is audited and answered, also if it changes nothing.

An imported item replaces the one of its id; an item that the policy has no room for is refused.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from models import events
from models.project.consolidation import ProjectUpkeep
from models.project.kept_memories import New
from models.project.short_term import RecentMessage, cut_short
from models.state.entity import same_fields

_NAME_CHARS = 256


class CommandFold(ProjectUpkeep):
    """Commands by hand, while one event is folded.

    Of an import texts are cut at what the policy keeps, and lists too; a memory's content is not: a longer one is
    refused. A memory that is kept under another id is strengthened (`long_term.put_back`).
    """

    def take_command(self, command: events.ManualProjectCommand) -> None:
        """Carry it out, audit it and answer it."""
        result = msgspec.structs.replace(self._carry_out(command), request_id=command.request_id)
        self.answered(str(command.__struct_config__.tag), command.by, result)

    def _carry_out(self, command: events.ManualProjectCommand) -> events.DeedResult:
        long_term = self.long_term
        match command:
            case events.ProjectMemoryAdded():
                result = self._add(command)
            case events.ProjectMemoryEdited():
                result = _result(command.memory_id, *long_term.edit(command))
            case events.ProjectMemoryDeleted():
                gone = long_term.delete(command.memory_id, "deleted")
                result = _result(command.memory_id, "done" if gone else "not_found")
            case events.RelationshipSet():
                result = _result(command.source_id, *long_term.relate(command))
            case events.PendingFactDecided():
                result = self._decide(command)
            case events.ConversationStatusSet():
                result = self._set_status(command)
            case events.ProjectImported():
                result = self._import(command)
            case _:
                raise AssertionError(command)
        return result

    def _add(self, command: events.ProjectMemoryAdded) -> events.DeedResult:
        new = New(
            **same_fields(command, New, "content", "subject", "valid_from"),
            type=command.memory_type,
            content=command.content.strip(),
            subject=command.subject.strip(),
            source=events.MemorySource(said_at=command.timestamp, by="hand"),
            valid_from=command.valid_from or command.timestamp,
        )
        refused = self.long_term.refusal(new)
        if refused is not None:
            return _result("", *refused)
        memory_id, outcome = self.long_term.add(new)
        return _result(memory_id, outcome)

    def _decide(self, command: events.PendingFactDecided) -> events.DeedResult:
        kept = self._state.pending.get(command.pending_id)
        if kept is None:
            return _result(command.pending_id, "not_found")
        if not command.promoted:
            self.drop_pending(command.pending_id, "deleted")
            return _result(command.pending_id, "done")
        memory_id, outcome = self.promote(kept.fact)
        return _result(memory_id or command.pending_id, outcome)

    def _set_status(self, command: events.ConversationStatusSet) -> events.DeedResult:
        state = self._state.conversation(command.conversation_id)
        outcome: events.CommandOutcome = "done"
        if state is not None:
            changed = self.set_status(state, command.status, command.timestamp, command.summary)
            outcome = "done" if changed else "unchanged"
        elif command.status == "active":
            self.begin_conversation(self.started(command.conversation_id, command.timestamp), "created")
        else:
            outcome = "not_found"
        return _result(command.conversation_id, outcome)

    # --- an import

    def _import(self, imported: events.ProjectImported) -> events.DeedResult:
        """Take the items in; gives what was refused, and how many were taken."""
        items: tuple[tuple[Callable[[Any], events.CommandOutcome], Iterable[Any]], ...] = (
            (self._conversation, imported.conversations),
            (self._chunk, imported.chunks),
            (self._memory, imported.memories),
            (self._episode, imported.episodes),
            (self._fact, imported.pending),
            (self._message, imported.messages),
        )
        refused = Counter(take(each) for take, given in items for each in given)
        taken = refused.pop("done", 0) + refused.pop("unchanged", 0)
        detail = ", ".join(f"{count} {why}" for why, count in sorted(refused.items()))
        return events.DeedResult(
            request_id=imported.request_id,
            outcome=min(refused, default="done"),
            detail=f"items refused: {detail}" if detail else "",
            count=taken,
        )

    def _memory(self, memory: events.ProjectMemory) -> events.CommandOutcome:
        most_chars = self._policy.long_term.content_chars
        fitting = msgspec.structs.replace(
            memory,
            closed_by=memory.closed_by[:64],
            sources=[_named(each) for each in memory.sources],
            history=[
                msgspec.structs.replace(each, content=cut_short(each.content, most_chars)) for each in memory.history
            ],
        )
        return self.long_term.put_back(fitting)

    def _episode(self, episode: events.ProjectEpisode) -> events.CommandOutcome:
        policy = self._policy.narrative
        if self._state.episode(episode.id) is None and self._state.head.episodes >= policy.most:
            return "too_many"
        if not 0 < len(episode.conversation_id) <= _NAME_CHARS:
            return "invalid"
        fitting = msgspec.structs.replace(
            episode,
            title=cut_short(episode.title, policy.title_chars),
            summary=cut_short(episode.summary, policy.summary_chars),
            context=cut_short(episode.context, policy.context_chars) if policy.context_chars else "",
            outcome=None if episode.outcome is None else cut_short(episode.outcome, policy.summary_chars),
            participants=[name[:_NAME_CHARS] for name in episode.participants if name][: policy.participants],
            linked_memories=[name[:64] for name in episode.linked_memories[: policy.linked]],
            merged_ids=_latest(episode.merged_ids, policy.most),
        )
        self.put_episode(fitting, "imported")
        return "done"

    def _conversation(self, conversation: events.ProjectConversation) -> events.CommandOutcome:
        policy, state = self._policy.short_term, self._state
        if not 0 < len(conversation.id) <= _NAME_CHARS:
            return "invalid"
        known = state.conversation(conversation.id)
        recent = sorted(set(conversation.recent))
        fitting = msgspec.structs.replace(
            conversation,
            recent=recent[max(0, len(recent) - policy.recent_messages) :],
            chunks=0 if known is None else len(known.head.chunks),
            active_facts=_latest(conversation.active_facts, policy.named),
            milestones=_latest(conversation.milestones, policy.named),
            summary=conversation.summary[:2_000],
        )
        if known is not None:
            self.replace_conversation(known, fitting)
            return "done"
        if state.head.conversations >= policy.conversations:
            return "too_many"
        self.begin_conversation(fitting, "imported")
        return "done"

    def _chunk(self, chunk: events.ConversationChunk) -> events.CommandOutcome:
        policy = self._policy.short_term
        state = self._state.conversation(chunk.conversation_id)
        if state is None:
            return "not_found"
        if not 1 <= chunk.first_number <= chunk.last_number:
            return "invalid"
        fitting = msgspec.structs.replace(
            chunk,
            summary=cut_short(chunk.summary, policy.merged_summary_chars),
            key_topics=[topic[:_NAME_CHARS] for topic in chunk.key_topics[-policy.merged_key_topics :]],
        )
        self.put_chunk(state, fitting)
        return "done"

    def _fact(self, fact: events.PendingFact) -> events.CommandOutcome:
        policy = self._policy.long_term
        if not 0 < len(fact.content) <= policy.content_chars:
            return "too_long"
        fitting = msgspec.structs.replace(
            fact,
            tags=fact.tags[: policy.tags],
            subject=fact.subject[:128],
            doubts=[doubt[:64] for doubt in fact.doubts[:16]],
            source=_named(fact.source),
        )
        return "done" if self.put_back_pending(fitting) else "too_many"

    def _message(self, said: events.ImportedMessage) -> events.CommandOutcome:
        state = self._state.conversation(said.conversation_id)
        if state is None:
            return "not_found"
        if said.turn not in state.head.conversation.recent:
            return "too_many"
        content = said.content[: self._policy.short_term.message_chars]
        state.put(RecentMessage(said.turn, said.role, said.user_id, content, said.timestamp))
        return "done"


def _result(item_id: str, outcome: events.CommandOutcome, detail: str = "") -> events.DeedResult:
    return events.DeedResult(
        request_id="", outcome=outcome, item_id=item_id, detail=detail, count=int(outcome == "done")
    )


def _named(source: events.MemorySource) -> events.MemorySource:
    names = {name: getattr(source, name)[:_NAME_CHARS] for name in ("conversation_id", "role", "user_id")}
    return msgspec.structs.replace(source, **names)


def _latest(names: list[str], most: int) -> list[str]:
    return [name[:64] for name in names[max(0, len(names) - most) :]]
