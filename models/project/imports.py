"""Items of a saved project come back: each replaces the one of its id, what the policy has no room for is refused."""

from __future__ import annotations

from collections import Counter

import msgspec

from models.events import (
    ConversationChunk,
    MemorySource,
    PendingFact,
    ProjectConversation,
    ProjectEpisode,
    ProjectImported,
    ProjectMemory,
)
from models.events.project import DeedOutcome
from models.events.project_items import ImportedMessage
from models.policy.project import ProjectPolicy
from models.project.episodes import Episodes
from models.project.learning import Learning
from models.project.short_term import Message, cut_short
from models.project.state import ProjectState
from models.project.talk import Talk

_NAME_CHARS = 256


class Import:
    """One `ProjectImported` on its way in.

    Texts are cut at what the policy keeps, and lists too; a memory's content is not: a longer one is refused.
    A memory that is kept under another id is strengthened (`long_term.put_back`).

    Args:
        state: The project.
        talk: Its conversations.
        learning: Its memories and pending facts.
        episodes: Its episodes.
        policy: The rules.
    """

    def __init__(
        self, state: ProjectState, talk: Talk, learning: Learning, episodes: Episodes, policy: ProjectPolicy
    ) -> None:
        self._state = state
        self._talk = talk
        self._learning = learning
        self._episodes = episodes
        self._policy = policy
        self._taken = 0
        self._refused: Counter[DeedOutcome] = Counter()

    def take(self, imported: ProjectImported) -> tuple[DeedOutcome, str, str, int]:
        """Take the items in; gives the outcome, no item's id, what was refused, and how many were taken."""
        for conversation in imported.conversations:
            self._note(self._conversation(conversation))
        for chunk in imported.chunks:
            self._note(self._chunk(chunk))
        for memory in imported.memories:
            self._note(self._memory(memory))
        for episode in imported.episodes:
            self._note(self._episode(episode))
        for fact in imported.pending:
            self._note(self._fact(fact))
        for message in imported.messages:
            self._note(self._message(message))
        detail = ", ".join(f"{count} {why}" for why, count in sorted(self._refused.items()))
        outcome: DeedOutcome = next(iter(sorted(self._refused)), "done")
        return outcome, "", f"items refused: {detail}" if detail else "", self._taken

    def _note(self, outcome: DeedOutcome) -> None:
        if outcome in {"done", "unchanged"}:
            self._taken += 1
        else:
            self._refused[outcome] += 1

    def _memory(self, memory: ProjectMemory) -> DeedOutcome:
        most_chars = self._policy.long_term.content_chars
        fitting = msgspec.structs.replace(
            memory,
            closed_by=memory.closed_by[:64],
            sources=[_named(each) for each in memory.sources],
            history=[
                msgspec.structs.replace(each, content=cut_short(each.content, most_chars)) for each in memory.history
            ],
        )
        return self._learning.long_term.put_back(fitting)

    def _episode(self, episode: ProjectEpisode) -> DeedOutcome:
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
            participants=[name[:_NAME_CHARS] for name in episode.participants[: policy.participants]],
            linked_memories=[name[:64] for name in episode.linked_memories[: policy.linked]],
            merged_ids=_latest(episode.merged_ids, policy.most),
        )
        self._episodes.put(fitting, "imported")
        return "done"

    def _conversation(self, conversation: ProjectConversation) -> DeedOutcome:
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
            self._talk.replace(known, fitting)
            return "done"
        if state.head.conversations >= policy.conversations:
            return "too_many"
        self._talk.begin(fitting, cause="imported")
        return "done"

    def _chunk(self, chunk: ConversationChunk) -> DeedOutcome:
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
        self._talk.put_chunk(state, fitting)
        return "done"

    def _fact(self, fact: PendingFact) -> DeedOutcome:
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
        return "done" if self._learning.put_back(fitting) else "too_many"

    def _message(self, said: ImportedMessage) -> DeedOutcome:
        state = self._state.conversation(said.conversation_id)
        if state is None:
            return "not_found"
        if said.turn not in state.head.conversation.recent:
            return "too_many"
        content = said.content[: self._policy.short_term.message_chars]
        state.put(Message(said.turn, said.role, said.user_id, content, said.timestamp))
        return "done"


def _named(source: MemorySource) -> MemorySource:
    return msgspec.structs.replace(
        source,
        conversation_id=source.conversation_id[:_NAME_CHARS],
        role=source.role[:_NAME_CHARS],
        user_id=source.user_id[:_NAME_CHARS],
    )


def _latest(names: list[str], most: int) -> list[str]:
    return [name[:64] for name in names[max(0, len(names) - most) :]]
