"""Work on a project during the fold of one event: learning, episodes (`project.narrative`), erasure of sessions.

Statements become memories at once, or pending facts (project memory, Fact Lifecycle).

| confidence | effect |
|---|---|
| from `promote_from` | a memory; an existing one is strengthened |
| from `pending_from` | a pending fact; each repetition raises its confidence, `1 − (1 − a)(1 − b)`, up to promotion |
| less | none |

A statement that is a memory already never becomes a pending fact.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import cached_property, partial

import msgspec

from models.events import (
    ItemCause,
    MemorySource,
    PendingFact,
    ProjectSummarised,
    ProjectTurnAdded,
    Role,
    StatementsRead,
    StatementsRequested,
)
from models.events.ids import sortable_id
from models.events.project import MOST_SENTENCES, CommandOutcome
from models.events.project_items import ProjectEpisode
from models.language.contradiction import is_revision, revised
from models.language.narrative_detection import ConversationTurn, detect, tokens_of
from models.language.notable import clipped
from models.language.statements.extraction import SEED_DECISION, ExtractedStatement, extract, stated, unread
from models.language.statements.spoken import sentences_of
from models.project.kept_memories import New, canonical, holder_of, read_again
from models.project.long_term import LongTerm
from models.project.narrative import merge_overlapping, take
from models.project.outputs import said_first
from models.project.shards import PENDING, KeptFact, StoredMemory, suffix_of
from models.project.short_term import ConversationState, RecentMessage, cut_short, is_as_asked
from models.project.state import EPISODE
from models.project.talk import ProjectTalk
from models.state.entity import same_fields

_SURE = 1.0
"""Confidence of a fact promoted by hand."""


class EpisodeFold(ProjectTalk):
    """Key moments of a project's conversations during the fold of one event; conversations list their episodes."""

    def read_episodes(
        self, turn: ProjectTurnAdded, message: RecentMessage, conversation: ConversationState, said: Iterable[str]
    ) -> list[str]:
        """Detect episodes in a message; returns the ids of new and extended ones."""
        kept = [each.memory for memory_id in said if (each := self._state.memories.get(memory_id)) is not None]
        fields = msgspec.structs.asdict(message)
        spoken = ConversationTurn(conversation_id=turn.session_id, **fields)
        watch = conversation.watch()
        found = detect(watch, spoken, kept, self._state.key, self._policy.narrative)
        conversation.keep_watch(watch)
        changed = dict.fromkeys(name for episode in found for name in self._take_episode(episode))
        grown = [known.episode for name in changed if (known := self._state.episode(name)) is not None]
        for episode in grown:
            turns = [each for each in conversation.head.conversation.recent if each <= episode.last_turn]
            self.ask_summary(episode, conversation.messages(turns))
        return [episode.id for episode in grown]

    def episode_summarised(self, answer: ProjectSummarised) -> None:
        """Store the summary of a slower summariser, if the episode is unchanged since the request."""
        kept = self._state.episode(answer.item_id)
        if kept is not None and is_as_asked(kept.episode, answer):
            summary = clipped(answer.summary, self._policy.narrative.summary_chars)
            told = msgspec.structs.replace(kept.episode, summary=summary, summarised_by=answer.summarised_by)
            self.put_episode(msgspec.structs.replace(told, tokens=tokens_of(told)), "summarised")

    def _take_episode(self, episode: ProjectEpisode) -> list[str]:
        taken = take(self._state.episodes(), episode, self.now, self._policy.narrative)
        for episode_id in taken.gone:
            absorbed = any(episode_id in changed.merged_ids for changed in taken.changed)
            self.drop_episode(episode_id, "merged" if absorbed else "displaced")
        for changed in taken.changed:
            self.put_episode(changed, "merged")
        return [changed.id for changed in taken.changed if changed.conversation_id == episode.conversation_id]

    def put_episode(self, episode: ProjectEpisode, cause: ItemCause) -> None:
        """Store an episode; `cause` applies to a change, a new one has `created` unless it is imported."""
        is_new = self._state.episode(episode.id) is None
        kept = self._state.put_episode(episode)
        self.item(episode, kept.slot, "created" if is_new and cause != "imported" else cause)

    def drop_episode(self, episode_id: str, cause: ItemCause) -> None:
        """Remove an episode, if it exists."""
        gone = self._state.drop_episode(episode_id)
        if gone is not None:
            session_id = gone.episode.conversation_id
            self.gone(EPISODE, gone.slot, episode_id, cause, (session_id, ""))
            self.unname(session_id, frozenset([episode_id]))

    def episodes_accessed(self, counts: Mapping[str, int], at: datetime) -> None:
        """Record retrievals of episodes."""
        for episode_id, count in counts.items():
            kept = self._state.episode(episode_id)
            if kept is not None:
                self.put_episode(read_again(kept.episode, count, at), "accessed")

    def unlink_dropped(self) -> None:
        """Remove links to removed memories from episodes and conversations."""
        dropped = self._state.memories.dropped
        gone = frozenset(dropped)
        if not gone:
            return
        for episode in self._state.episodes():
            if not gone.isdisjoint(episode.linked_memories):
                linked = [memory_id for memory_id in episode.linked_memories if memory_id not in gone]
                self.put_episode(msgspec.structs.replace(episode, linked_memories=linked), "related")
        conversations = {source.conversation_id for memory in dropped.values() for source in memory.sources}
        for conversation_id in sorted(conversations):
            self.unname(conversation_id, gone)
        dropped.clear()

    def merge_episodes(self) -> tuple[list[list[str]], int]:
        """Merge overlapping episodes; returns for each merge the kept and the absorbed ids, and the tokens saved."""
        merged, saved = [], 0
        known = {episode.id: episode for episode in self._state.episodes()}
        for episode, absorbed in merge_overlapping(list(known.values()), self._policy.narrative):
            if not absorbed:
                continue
            saved += sum(known[each].tokens for each in [episode.id, *absorbed] if each in known) - episode.tokens
            for episode_id in absorbed:
                self.drop_episode(episode_id, "merged")
            self.put_episode(episode, "merged")
            merged.append([episode.id, *absorbed])
        return merged, max(0, saved)


class Work(EpisodeFold):
    """A project during the fold of one event: conversations, memories, pending facts and episodes."""

    @cached_property
    def long_term(self) -> LongTerm:
        """The memories; their changes are emitted."""
        state = self._state
        return LongTerm(state.memories, self._tell, state.key, self._policy.long_term, self.now)

    def _tell(self, kept: StoredMemory, cause: ItemCause, gone: bool) -> None:
        if gone:
            self.gone("memory", kept.slot, kept.memory.id, cause, said_first(kept.memory))
        else:
            self.item(kept.memory, kept.slot, cause)

    def learn(self, turn: ProjectTurnAdded, content: str, context: str) -> list[str]:
        """Learn from a message; returns the ids of new and strengthened memories."""
        revisions = self._revisions(turn, content)
        found = extract(content, turn.role, context=context)
        if self._policy.long_term.ask and turn.role is Role.USER and (sentences := unread(content, context=context)):
            self.emit(
                StatementsRequested,
                *(turn.session_id, turn.user_id),
                project_id=turn.project_id,
                turn=turn.turn,
                sentences=sentences[:MOST_SENTENCES],
            )
        return self._learn_all(
            [*revisions, *(each for each in found if not (revisions and is_revision(each.content)))],
            _source(turn, turn.role),
        )

    def learn_second(self, answer: StatementsRead) -> list[str]:
        """Learn statements that a second reader found in a user's message; returns ids as `learn` does."""
        found = [stated(each.content, each.memory_type, each.confidence) for each in answer.statements]
        return self._learn_all(found, _source(answer, Role.USER))

    def _learn_all(self, found: Iterable[ExtractedStatement], source: MemorySource) -> list[str]:
        said: dict[str, None] = {}
        for each in found:
            if not self._state.is_full and (memory_id := self._learn(each, source)):
                said[memory_id] = None
        return list(said)

    def _revisions(self, turn: ProjectTurnAdded, content: str) -> list[ExtractedStatement]:
        """Statements from a bare revision ("change of plan, February 14 instead"): the last such one, changed."""
        talk = self._state.conversation(turn.session_id)
        said = [each for each in sentences_of(content) if is_revision(each)] if turn.role is Role.USER else []
        if not said or talk is None:
            return []
        named = (self._state.memories.get(each) for each in reversed(talk.head.conversation.active_facts))
        known = [kept.memory for kept in named if kept is not None]
        found = []
        for sentence in said:
            for memory in known:
                if now := revised(memory.content, sentence):
                    fields = same_fields(memory, ExtractedStatement, "content", "confidence")
                    found.append(ExtractedStatement(**fields, content=now, confidence=SEED_DECISION))
                    break
        return found

    def _learn(self, found: ExtractedStatement, source: MemorySource) -> str:
        """Id of the new or strengthened memory; empty without one."""
        policy = self._policy.long_term
        content = _cut(found.content, policy.content_chars)
        found = msgspec.structs.replace(found, content=content, tags=found.tags[: policy.tags])
        if not found.content:
            return ""
        if found.confidence >= policy.promote_from:
            pending = self._pending_like(found, self._pending_id(found, source))
            if pending is not None:
                self.drop_pending(pending.fact.id, "promoted")
            return self.long_term.add(_new(found, source, found.confidence))[0]
        if found.confidence >= policy.pending_from:
            return self._wait(found, source)
        return ""

    def memories_accessed(self, counts: Mapping[str, int], at: datetime) -> bool:
        """Record retrievals of memories; False if one write is not enough: the head then has the progress."""
        head = self._head
        for memory_id in sorted(memory_id for memory_id in counts if memory_id > head.accessed):
            if self._state.is_full:
                return False
            self.long_term.accessed(memory_id, counts[memory_id], at)
            head.accessed = memory_id
        head.accessed = ""
        return True

    # --- pending facts

    def _wait(self, found: ExtractedStatement, source: MemorySource) -> str:
        named = self._pending_id(found, source)
        known = self._pending_like(found, named)
        if known is None:
            if not self.long_term.knows(_new(found, source, found.confidence)):
                fields = same_fields(found, PendingFact)
                fact = PendingFact(**fields, id=named, source=source, extracted_at=self.now)
                self._keep_pending(fact, "created")
                while self._head.pending > self._policy.long_term.pending:
                    self.drop_pending(self._state.pending.weakest(), "displaced")
            return ""
        if known.fact.source == source:
            return ""  # a repeated answer is no repetition by the user
        sure = 1.0 - (1.0 - known.fact.confidence) * (1.0 - found.confidence)
        if sure < self._policy.long_term.promote_from:
            self._keep_pending(msgspec.structs.replace(known.fact, confidence=sure), "said_again")
            return ""
        self.drop_pending(known.fact.id, "promoted")
        self.long_term.add(_new(known.fact, known.fact.source, known.fact.confidence))
        return self.long_term.add(_new(found, source, found.confidence))[0]

    def _pending_id(self, found: ExtractedStatement, source: MemorySource) -> str:
        """Id of a pending fact; equal content, type and holder give an equal suffix."""
        whose = holder_of(found.type, source.user_id)
        parts = [found.type.value, canonical(found.content), *([whose] if whose else [])]
        return sortable_id(source.said_at, self._state.key, PENDING, *parts)

    def _pending_like(self, found: ExtractedStatement, named: str) -> KeptFact | None:
        said, alike = (found.type, canonical(found.content)), self._state.pending.alike(suffix_of(named))
        return next((each for each in alike if (each.fact.type, canonical(each.fact.content)) == said), None)

    def _keep_pending(self, fact: PendingFact, cause: ItemCause) -> None:
        self._head.pending += self._state.pending.get(fact.id) is None
        kept = self._state.pending.put(fact)
        self.item(fact, kept.slot, cause)

    def put_back_pending(self, fact: PendingFact) -> bool:
        """Import a pending fact; False if the maximum number is reached."""
        if self._state.pending.get(fact.id) is None and self._head.pending >= self._policy.long_term.pending:
            return False
        self._keep_pending(fact, "imported")
        return True

    def promote(self, fact: PendingFact) -> tuple[str, CommandOutcome]:
        """Promote a pending fact by hand; returns the memory's id and the outcome."""
        memory_id, outcome = self.long_term.add(_new(fact, fact.source, _SURE))
        if memory_id:
            self.drop_pending(fact.id, "promoted")
        return memory_id, outcome

    def drop_pending(self, pending_id: str, cause: ItemCause) -> None:
        """Remove a pending fact."""
        gone = self._state.pending.drop(pending_id)
        if gone is not None:
            self._head.pending -= 1
            self.gone(PENDING, gone.slot, pending_id, cause, said_first(gone.fact))

    # --- erasing

    def erase_step(self, session_ids: frozenset[str]) -> bool:
        """Erase the data of these sessions, as much as one write takes; False if a further step is needed.

        Each step searches for the remaining data, so steps need no shared progress.

        | data | effect |
        |---|---|
        | their messages, chunks and conversations | removed |
        | their episodes and pending facts | removed |
        | a memory without other sources | removed with its relationships; what it superseded is valid again |
        | a memory with other sources | stays without these sources |
        | outcomes of commands by hand | stay without ids of missing items |
        """
        for drop in self._concerned(session_ids):
            if self._state.is_full:
                return False
            drop()
        if not self.long_term.erase_sessions(session_ids, lambda: self._state.is_full):
            return False
        if self._state.unname_results():
            self._changed = True
        return True

    def _concerned(self, session_ids: frozenset[str]) -> Iterator[Callable[[], None]]:
        """Removals of the conversations, episodes and pending facts of these sessions."""
        state = self._state
        for session_id in sorted(session_ids):
            if (conversation := state.conversation(session_id)) is not None:
                yield partial(self.drop_conversation, conversation, "erased")
        for episode in state.episodes():
            if episode.conversation_id in session_ids:
                yield partial(self.drop_episode, episode.id, "erased")
        for kept in state.pending.all():
            if kept.fact.source.conversation_id in session_ids:
                yield partial(self.drop_pending, kept.fact.id, "erased")


def _source(said: ProjectTurnAdded | StatementsRead, role: Role) -> MemorySource:
    return MemorySource(
        conversation_id=said.session_id,
        turn=said.turn,
        role=role.value,
        user_id=said.user_id,
        said_at=said.timestamp,
    )


def _new(said: ExtractedStatement | PendingFact, source: MemorySource, confidence: float) -> New:
    same = same_fields(said, New, "confidence", "source")
    return New(**same, confidence=confidence, source=source, valid_from=source.said_at)


def _cut(content: str, most_chars: int) -> str:
    """Cut at a word."""
    content = content.strip()
    if len(content) <= most_chars:
        return content
    return content[:most_chars].rpartition(" ")[0].rstrip() or cut_short(content, most_chars)
