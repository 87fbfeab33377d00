"""Every topic: purpose, owner, key, and how the broker keeps it. The rows are `topics.toml`."""

from __future__ import annotations

import tomllib
from datetime import timedelta
from enum import StrEnum
from importlib.resources import files
from typing import Any

import msgspec
from msgspec import Struct

_MIB = 1024 * 1024


class Cleanup(StrEnum):
    """What the broker does with old records (Kafka's `cleanup.policy`)."""

    DELETE = "delete"
    COMPACT = "compact"


class Topic(Struct, frozen=True, kw_only=True):
    """One topic. The full name is `<prefix>.<name>`."""

    name: str
    purpose: str
    owner: str
    """The role that writes it."""
    key: str
    cleanup: Cleanup = Cleanup.DELETE
    retention: timedelta | None = timedelta(days=30)
    """How long records stay; None for a compacted topic keeps the latest per key for ever."""
    compaction_lag: timedelta = timedelta(0)
    """Of a compacted topic: a record is not compacted before."""
    compacted_within: timedelta = timedelta(days=7)
    """Of a compacted topic: what was replaced is gone after it, once the partition is written to again."""
    segment: timedelta | None = None
    """The broker closes a file after it, and removes closed ones only. None: Kafka's seven days."""
    partitions: int = 12
    max_message_bytes: int = _MIB
    log_append_time: bool = False
    """Inputs: the broker stamps records, since producers' event times are no basis for retention."""
    public: bool = True
    archived: bool = True
    """Whether the archive keeps it; what says again what another topic says need not be kept twice."""

    def full_name(self, prefix: str) -> str:
        """Name on the broker."""
        return f"{prefix}.{self.name}"


def _topic(name: str, row: dict[str, Any]) -> Topic:
    for_ever = {"retention": None} if row.get("cleanup") == Cleanup.COMPACT else {}
    return msgspec.convert({"name": name, **for_ever, **row}, Topic)


_ROWS = tomllib.loads(files(__package__).joinpath("topics.toml").read_text(encoding="utf-8"))
_BY_NAME = {name: _topic(name, row) for name, row in _ROWS.items()}
TOPICS = tuple(_BY_NAME.values())

TURNS = _BY_NAME["turns.v1"]
NUMBERED = _BY_NAME["numbered.v1"]
PROFILES = _BY_NAME["profiles.v1"]
WINDOWS = _BY_NAME["windows.v1"]
ALERTS = _BY_NAME["alerts.v1"]
JUDGEMENTS = _BY_NAME["judgement-requests.v1"]
COMPACTIONS = _BY_NAME["compactions.v1"]
CONVERSATION_TOPICS = _BY_NAME["conversation-topics.v1"]
EPISODES = _BY_NAME["episodes.v1"]
COMMANDS = _BY_NAME["commands.v1"]
REQUESTS = _BY_NAME["requests.v1"]
FACTS = _BY_NAME["facts.v1"]
USER_EPISODES = _BY_NAME["user-episodes.v1"]
MEMORIES = _BY_NAME["memories.v1"]
PROJECTS = _BY_NAME["projects.v1"]
MEMORY_EVENTS = _BY_NAME["memory-events.v1"]
ERASURES = _BY_NAME["erasures.v1"]
AUDIT = _BY_NAME["audit.v1"]
DEAD_LETTERS = _BY_NAME["dead-letters.v1"]
SESSION_STATE = _BY_NAME["sessions-state.v1"]
MEMORY_STATE = _BY_NAME["memory-state.v1"]
