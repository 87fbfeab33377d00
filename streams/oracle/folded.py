"""Roles and their folds: replay, comparison, reset and chaos all take it from here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from models.events.topics import COMMANDS, MEMORY_STATE, SESSION_STATE, TOPICS, TURNS, Topic
from models.partition.commands import commands_offset
from models.partition.sessions import folded_offset

Entities = Mapping[str, Mapping[str, bytes]]
"""State of one partition: entity (session, user or space of memories) → part → bytes."""


class Folded(NamedTuple):
    """A role that folds a log into state.

    Attributes:
        role: Its name.
        source: What it folds.
        changelog: Where its state is kept.
        offset: State of a partition → source offset of the last record in it, −1 for an empty one.
    """

    role: str
    source: Topic
    changelog: Topic
    offset: Callable[[Entities], int]

    @property
    def outputs(self) -> tuple[Topic, ...]:
        """Public topics that it writes; dead letters are every folding role's, and stand with the first one's."""
        return tuple(topic for topic in TOPICS if topic.public and topic.owner == self.role)


SESSIONS = Folded("sessions", TURNS, SESSION_STATE, folded_offset)
USERS = Folded("memory", COMMANDS, MEMORY_STATE, commands_offset)
FOLDED = (SESSIONS, USERS)
"""In the order in which the one's outputs are the other's inputs."""
OUTPUT_TOPICS = tuple(topic for each in FOLDED for topic in each.outputs)
