"""Sessions of a project are erased: what only they said goes, what others said too stays theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from models.project.work import Work


def erase_step(work: Work, session_ids: frozenset[str]) -> bool:
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
    state = work.state
    for drop in _concerned(work, session_ids):
        if state.is_full:
            return False
        drop()
    if not work.learning.long_term.erase_sessions(session_ids, lambda: state.is_full):
        return False
    if state.unname_results():
        work.emission.touch()
    return True


def _concerned(work: Work, session_ids: frozenset[str]) -> Iterator[Callable[[], None]]:
    """How each conversation, episode and pending fact of these sessions goes."""
    state = work.state
    for session_id in sorted(session_ids):
        if (conversation := state.conversation(session_id)) is not None:
            yield partial(work.talk.drop, conversation, "erased")
    for episode in state.episodes():
        if episode.conversation_id in session_ids:
            yield partial(work.episodes.drop, episode.id, "erased")
    for pending_id in state.pending.ids():
        kept = state.pending.get(pending_id)
        if kept is not None and kept.fact.source.conversation_id in session_ids:
            yield partial(work.learning.drop, pending_id, "erased")
