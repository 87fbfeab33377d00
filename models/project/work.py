"""Common work of the steps of one event of a project, and the erasing of sessions, which goes through all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from models.policy import Policy
from models.project.episodes import EpisodeFold
from models.project.learning import Learning
from models.project.outputs import ProjectEmission
from models.project.state import ProjectState
from models.project.talk import ProjectTalk


class Work:
    """A project, while one event is folded.

    Args:
        state: The project.
        emission: Hears of what changes.
        policy: The rules.

    Attributes:
        state: The project.
        head: Its head.
        emission: Hears of what changes.
        policy: The rules of projects.
        talk: Its conversations.
        learning: Its memories and pending facts.
        episodes: Its episodes.
    """

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
        for pending_id in state.pending.ids():
            kept = state.pending.get(pending_id)
            if kept is not None and kept.fact.source.conversation_id in session_ids:
                yield partial(self.learning.drop, pending_id, "erased")
