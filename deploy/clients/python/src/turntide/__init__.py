"""Client of Turntide: live memory of conversations, three lines from a chatbot."""

from turntide.answers import (
    Accepted,
    Added,
    Context,
    Episode,
    EpisodeHit,
    Erasure,
    Fact,
    FactChange,
    Found,
    Profile,
    Segment,
    Segments,
    Turn,
    TurnHit,
)
from turntide.errors import ApiError, FieldError, NotYet, TurntideError, Unreachable
from turntide.memory import AsyncMemory, Memory

__all__ = [
    "Accepted",
    "Added",
    "ApiError",
    "AsyncMemory",
    "Context",
    "Episode",
    "EpisodeHit",
    "Erasure",
    "Fact",
    "FactChange",
    "FieldError",
    "Found",
    "Memory",
    "NotYet",
    "Profile",
    "Segment",
    "Segments",
    "Turn",
    "TurnHit",
    "TurntideError",
    "Unreachable",
]
