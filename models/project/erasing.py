"""Sessions of a project are erased: what only they said goes, what others said too stays theirs."""

from __future__ import annotations

from models.project.episodes import Episodes
from models.project.learning import Learning
from models.project.outputs import Emission
from models.project.state import ProjectState
from models.project.talk import Talk


class Erasing:
    """Erases sessions of a project, as much with each step as one write takes.

    A step finds what is left by looking for it, so that it needs to know of no other.

    Args:
        state: The project.
        emission: Hears of what changes.
        talk: Its conversations.
        learning: Its memories and pending facts.
        episodes: Its episodes.
    """

    def __init__(
        self, state: ProjectState, emission: Emission, talk: Talk, learning: Learning, episodes: Episodes
    ) -> None:
        self._state = state
        self._emission = emission
        self._talk = talk
        self._learning = learning
        self._episodes = episodes

    def step(self, session_ids: frozenset[str]) -> bool:
        """Let go of what these sessions said; False if more is left.

        | what | becomes |
        |---|---|
        | their messages, chunks and conversations | gone |
        | episodes, pending facts | gone |
        | a memory that nobody else said | gone, with relationships to it; what it had closed holds again |
        | a memory that others said too | stays, and no longer names them |
        | outcomes of commands by hand | stay, and no longer name what is not there |
        """
        return (
            self._conversations(session_ids)
            and self._happenings(session_ids)
            and self._pending(session_ids)
            and self._learning.long_term.erase_sessions(session_ids, lambda: self._state.is_full)
            and self._results()
        )

    def _conversations(self, session_ids: frozenset[str]) -> bool:
        for session_id in sorted(session_ids):
            conversation = self._state.conversation(session_id)
            if conversation is None:
                continue
            if self._state.is_full:
                return False
            self._talk.drop(conversation, "erased")
        return True

    def _happenings(self, session_ids: frozenset[str]) -> bool:
        for episode in self._state.episodes():
            if episode.conversation_id not in session_ids:
                continue
            if self._state.is_full:
                return False
            self._episodes.drop(episode.id, "erased")
        return True

    def _pending(self, session_ids: frozenset[str]) -> bool:
        for pending_id in self._state.pending.ids():
            kept = self._state.pending.get(pending_id)
            if kept is None or kept.fact.source.conversation_id not in session_ids:
                continue
            if self._state.is_full:
                return False
            self._learning.drop(pending_id, "erased")
        return True

    def _results(self) -> bool:
        if self._state.unname_results():
            self._emission.touch()
        return True
