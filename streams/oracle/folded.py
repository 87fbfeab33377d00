"""Roles and their folds: replay, comparison, reset and chaos all take it from here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from models.entities import REGISTRY
from models.events.topics import COMMANDS, MEMORY_STATE, SESSION_STATE, TURNS, Topic

Entities = Mapping[str, Mapping[str, bytes]]
"""State of one partition: entity (session, user or space of memories) → part → bytes."""


class Folded(NamedTuple):
    """A role that folds the log `source` into state, which it keeps in `changelog`."""

    role: str
    source: Topic
    changelog: Topic

    @property
    def outputs(self) -> tuple[Topic, ...]:
        """Public topics that it writes; dead letters are every folding role's, and stand with the first one's."""
        return tuple(topic for topic in REGISTRY.topics if topic.public and topic.owner == self.role)


SESSIONS = Folded("sessions", TURNS, SESSION_STATE)
USERS = Folded("memory", COMMANDS, MEMORY_STATE)
FOLDED = (SESSIONS, USERS)
"""In the order in which the one's outputs are the other's inputs."""
OUTPUT_TOPICS = tuple(topic for each in FOLDED for topic in each.outputs)
