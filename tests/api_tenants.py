"""Two tenants with a canary in everything that is remembered: turns, topics, facts, episodes."""

from __future__ import annotations

from typing import Any

from models.events import EpisodeCompressed, FactChanged, Position, TopicChanged, Turn, UserMemoryChanged
from models.topics import TURNS
from models.user_events import FactCategory, SessionTurns
from tests.api_doubles import AT, said

TENANTS = ("a", "b")
QUERY = "canary about pelicans"
SHARED = "shared"
"""A user id and a session id that both tenants use."""


def canary(app: str) -> str:
    """What nobody but the app's own callers may ever see."""
    return f"canary-of-{app}"


def turns_of(app: str) -> list[Turn]:
    """A turn in the shared session and one in the tenant's own."""
    number = TENANTS.index(app)
    return [
        said(number, f"{canary(app)}: {QUERY}", app=app, user=SHARED, session=SHARED),
        said(0, f"{canary(app)}: {QUERY}", app=app, user=f"user-{app}", session=f"session-{app}"),
    ]


def _common(app: str, user: str, session: str) -> dict[str, Any]:
    return {
        "id": f"{app}-{user}",
        "session_id": session,
        "user_id": user,
        "app_id": app,
        "timestamp": AT,
        "source": Position(TURNS.name, 0, 0),
    }


def topic_of(app: str, session: str) -> TopicChanged:
    """A topic of a session."""
    return TopicChanged(
        **_common(app, f"user-{app}", session),
        topic_id=f"topic-{app}",
        title=f"{canary(app)} {QUERY}",
        cause="started",
        detail=canary(app),
        active=True,
        kept=True,
        turn=TENANTS.index(app),
        message_count=1,
        access_count=1,
        importance=0.5,
        priority=0.5,
        half_life_days=1.0,
        memory_type="working",
        tags=[canary(app)],
        created_at=AT,
        last_active_at=AT,
        active_turns=[0, 1],
        packed_turns=[],
        released_messages=0,
        packed_bytes=0,
        summary=canary(app),
        summarised_by=None,
        session_topics=1,
        compaction=None,
    )


def user_events_of(app: str, user: str, session: str) -> tuple[FactChanged, EpisodeCompressed, UserMemoryChanged]:
    """A fact, an episode and the standing of a user."""
    common, number = _common(app, user, session), TENANTS.index(app)
    changed = FactChanged(
        **common,
        category=FactCategory.IDENTITY,
        key="name",
        value=canary(app),
        confidence=1.0,
        importance=0.9,
        active=True,
        cause="stored",
        valid_from=AT,
        valid_until=None,
        turn=0,
        extracted_by="rules",
        history=[],
    )
    compressed = EpisodeCompressed(
        **common,
        episode=1,
        first_turn=1,
        last_turn=20,
        turn_range="turns 1-20",
        turns=[SessionTurns(session, [0])],
        summary=f"{canary(app)}: {QUERY}",
        summarised_by="extractive",
        key_topics=[canary(app)],
        embedding=[],
        embedded_by="",
        started_at=AT,
        ended_at=AT,
        tokens_before=2,
        tokens_after=1,
    )
    stands = UserMemoryChanged(
        **common,
        turn_count=21,
        compressed_turns=20,
        requested_turns=20,
        # A reference to the other tenant's turn in a shared session must lead nowhere.
        short_term=[SessionTurns(session, [number, 1 - number])],
        facts=1,
        episodes=1,
        seen={"0": 10},
    )
    return changed, compressed, stands
