"""Outputs of a log that an erasure takes: they need not be there any more. Pure.

A fold sees an erasure in its log, so state needs no rule of its own. Its earlier outputs were emitted all the same:
compacted topics, archive and index lose them. What comes after the erasure, of the same session even, must be there.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from models.entities import KIND_OF, SESSION, entity_key
from models.erasure import ErasureSubject
from models.events import DeadLetter, OutputEvent, Position, SpaceErased, UserErased


class Forgotten:
    """Collects the erasures of a log.

    Attributes:
        subjects: Users and apps that went as a whole; `among` knows of those of its own log only.
    """

    def __init__(self) -> None:
        self.subjects: set[ErasureSubject] = set()
        self._sessions: set[str] = set()
        self._entities: set[str] = set()
        self._until: dict[int, int] = {}

    def note(self, erasure: Struct, position: Position) -> None:
        """Take an erasure that stands in the log: of sessions, or of all that its key names."""
        sessions = getattr(erasure, "session_ids", None) or [getattr(erasure, "session_id", "")]
        if any(sessions):
            self._sessions.update(sessions)
        else:
            self._entities.add(entity_key(erasure))
        match erasure:
            case UserErased():
                self.subjects.add(ErasureSubject("user", erasure.app_id, erasure.user_id))
            case SpaceErased(user_id=""):
                self.subjects.add(ErasureSubject("app", erasure.app_id))
        self._until[position.partition] = max(position.offset, self._until.get(position.partition, -1))

    def among(self, outputs: Mapping[str, OutputEvent]) -> frozenset[str]:
        """Ids of the outputs that erasures of this log take: caused before, or by them."""
        if not self._until:
            return frozenset()
        subject = ErasureSubject("session", session_ids=frozenset(self._sessions)).follow(outputs.values())
        return frozenset(
            event_id
            for event_id, event in outputs.items()
            if self._is_before(event) and (subject.concerns(event) or self._is_of_entity(event))
        )

    def _is_before(self, event: OutputEvent) -> bool:
        # A refused record may stand on any partition.
        return isinstance(event, DeadLetter) or event.source.offset <= self._until.get(event.source.partition, -1)

    def _is_of_entity(self, event: OutputEvent) -> bool:
        return KIND_OF[type(event)] is not SESSION and entity_key(event) in self._entities


def without_session(event: Struct, subjects: frozenset[ErasureSubject]) -> bool:
    """Whether an output that names no session, so that no session's erasure tells of it, is one of the subjects'."""
    return not getattr(event, "session_id", "") and any(subject.concerns(event) for subject in subjects)
