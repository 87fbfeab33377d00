"""Topics that an erasure looks at, and for what."""

from __future__ import annotations

from models.entities import REGISTRY
from models.events.topics import (
    COMMANDS,
    ERASURES,
    FACTS,
    MEMORIES,
    MEMORY_STATE,
    PROFILES,
    PROJECTS,
    REQUESTS,
    SESSION_STATE,
    TURNS,
    USER_EPISODES,
    Cleanup,
)

PUBLIC = tuple(topic for topic in REGISTRY.topics if topic.public and topic is not ERASURES)
"""All but the erasures' own, which is cleared when the proof is written."""
COMPACTED = tuple(topic for topic in PUBLIC if topic.cleanup is Cleanup.COMPACT)
CHANGELOGS = (SESSION_STATE, MEMORY_STATE)
SPOKEN_IN = (TURNS, PROFILES, COMMANDS, FACTS, USER_EPISODES, PROJECTS)
"""They tell of sessions and of who spoke in them."""
TYING = (MEMORIES, FACTS, USER_EPISODES, REQUESTS, PROJECTS)
"""Their events tie others to the subject (`Subject.follow`)."""
INDEXED = tuple(topic for topic in REGISTRY.indexed_topics if topic is not ERASURES)
"""What the index reads but for erasures."""
ARCHIVED = REGISTRY.archived_topics
