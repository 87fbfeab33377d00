"""Work on a project while one event is folded: episodes (rules: `project.narrative`) and the erasing of sessions."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial

import msgspec

from models.events import ItemCause, ProjectTurnAdded
from models.events.project_items import ProjectEpisode
from models.language.narrative_detection import ConversationTurn, detect
from models.policy import Policy
from models.project.kept_memories import read_again
from models.project.learning import Learning
from models.project.narrative import merge_overlapping, take
from models.project.outputs import ProjectEmission
from models.project.short_term import ConversationState, RecentMessage
from models.project.state import EPISODE, ProjectState
from models.project.talk import ProjectTalk


class EpisodeFold:
    """Key moments of a project's conversations, while one event is folded; the conversations name their episodes."""

    def __init__(self, state: ProjectState, emission: ProjectEmission, talk: ProjectTalk, policy: Policy) -> None:
        self._state = state
        self._emission = emission
        self._talk = talk
        self._policy = policy.projects.narrative

    def read(
        self, turn: ProjectTurnAdded, message: RecentMessage, conversation: ConversationState, said: Iterable[str]
    ) -> list[str]:
        """Look for episodes in a message; gives the ids of those that came or grew.

        Args:
            turn: Where it was said.
            message: As it is kept.
            conversation: Its conversation.
            said: Memories that it made or strengthened.
        """
        kept = [each.memory for memory_id in said if (each := self._state.memories.get(memory_id)) is not None]
        fields = msgspec.structs.asdict(message)
        spoken = ConversationTurn(conversation_id=turn.session_id, **fields)
        watch = conversation.watch()
        found = detect(watch, spoken, kept, self._state.key, self._policy)
        conversation.keep_watch(watch)
        return [changed for episode in found for changed in self._take(episode)]

    def _take(self, episode: ProjectEpisode) -> list[str]:
        taken = take(self._state.episodes(), episode, self._emission.now, self._policy)
        for episode_id in taken.gone:
            absorbed = any(episode_id in changed.merged_ids for changed in taken.changed)
            self.drop(episode_id, "merged" if absorbed else "displaced")
        for changed in taken.changed:
            self.put(changed, "merged")
        return [changed.id for changed in taken.changed if changed.conversation_id == episode.conversation_id]

    def put(self, episode: ProjectEpisode, cause: ItemCause) -> None:
        """Keep an episode; `cause` is that of a change, one that was not kept is created unless imported."""
        is_new = self._state.episode(episode.id) is None
        kept = self._state.put_episode(episode)
        self._emission.item(episode, kept.slot, "created" if is_new and cause != "imported" else cause)

    def drop(self, episode_id: str, cause: ItemCause) -> None:
        """An episode goes, if it is there."""
        gone = self._state.drop_episode(episode_id)
        if gone is not None:
            session_id = gone.episode.conversation_id
            self._emission.gone(EPISODE, gone.slot, episode_id, cause, (session_id, ""))
            self._talk.unname(session_id, frozenset([episode_id]))

    def accessed(self, counts: Mapping[str, int], at: datetime) -> None:
        """Readers retrieved some of these."""
        for episode_id, count in counts.items():
            kept = self._state.episode(episode_id)
            if kept is not None:
                self.put(read_again(kept.episode, count, at), "accessed")

    def unlink_dropped(self) -> None:
        """Memories that went are named by no episode and no conversation any longer."""
        dropped = self._state.memories.dropped
        gone = frozenset(dropped)
        if not gone:
            return
        for episode in self._state.episodes():
            if not gone.isdisjoint(episode.linked_memories):
                linked = [memory_id for memory_id in episode.linked_memories if memory_id not in gone]
                self.put(msgspec.structs.replace(episode, linked_memories=linked), "related")
        conversations = {source.conversation_id for memory in dropped.values() for source in memory.sources}
        for conversation_id in sorted(conversations):
            self._talk.unname(conversation_id, gone)
        dropped.clear()

    def merge(self) -> tuple[list[list[str]], int]:
        """Merge those that overlap; gives, of each merge, which stayed and which went, and the tokens saved."""
        merged, saved = [], 0
        known = {episode.id: episode for episode in self._state.episodes()}
        for episode, absorbed in merge_overlapping(list(known.values()), self._policy):
            if not absorbed:
                continue
            saved += sum(known[each].tokens for each in [episode.id, *absorbed] if each in known) - episode.tokens
            for episode_id in absorbed:
                self.drop(episode_id, "merged")
            self.put(episode, "merged")
            merged.append([episode.id, *absorbed])
        return merged, max(0, saved)


class Work:
    """A project, while one event is folded: its conversations, its memories and pending facts, its episodes."""

    def __init__(self, state: ProjectState, emission: ProjectEmission, policy: Policy) -> None:
        self.state = state
        self.head = state.head
        self.emission = emission
        self.policy = policy.projects
        self.talk = ProjectTalk(state, emission, policy)
        self.learning = Learning(state, emission, policy)
        self.episodes = EpisodeFold(state, emission, self.talk, policy)

    def erase_step(self, session_ids: frozenset[str]) -> bool:
        """Let go of what these sessions said, as much as one write takes; False if more is left.

        A step finds what is left by looking for it, so that it needs to know of no other.

        | what | becomes |
        |---|---|
        | their messages, chunks and conversations | gone |
        | episodes, pending facts | gone |
        | a memory that nobody else said | gone, with relationships to it; what it had closed holds again |
        | a memory that others said too | stays, and no longer names them |
        | outcomes of commands by hand | stay, and no longer name what is not there |
        """
        for drop in self._concerned(session_ids):
            if self.state.is_full:
                return False
            drop()
        if not self.learning.long_term.erase_sessions(session_ids, lambda: self.state.is_full):
            return False
        if self.state.unname_results():
            self.emission.touch()
        return True

    def _concerned(self, session_ids: frozenset[str]) -> Iterator[Callable[[], None]]:
        """How each conversation, episode and pending fact of these sessions goes."""
        state = self.state
        for session_id in sorted(session_ids):
            if (conversation := state.conversation(session_id)) is not None:
                yield partial(self.talk.drop, conversation, "erased")
        for episode in state.episodes():
            if episode.conversation_id in session_ids:
                yield partial(self.episodes.drop, episode.id, "erased")
        for kept in state.pending.all():
            if kept.fact.source.conversation_id in session_ids:
                yield partial(self.learning.drop, kept.fact.id, "erased")
