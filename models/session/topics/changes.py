"""Outputs of topic memory: its changes, and the events they become."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from models.events import TopicCause, TopicCompaction
from models.session.topics.state import Damage


class TopicChange(Struct, frozen=True):
    """One change, told with the topic as it is at that moment."""

    slot: int
    cause: TopicCause
    detail: str = ""
    kept: bool = True
    compaction: TopicCompaction | None = None


class Announcer(Protocol):
    """Who is told, at the moment it happens."""

    def topic(self, change: TopicChange) -> None:
        """A topic changed."""
        ...

    def damage(self, damage: Damage) -> None:
        """Something of a packed history could not be read."""
        ...
