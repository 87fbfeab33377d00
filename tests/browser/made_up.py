"""Made-up sessions and alerts as the log has them, and what is remembered of one; nothing here was said by anybody."""

import math
import random
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from msgspec import structs

from models.events import (
    AlertChanged,
    AlertStatus,
    EpisodeCompressed,
    FactChanged,
    Mode,
    ProfileUpdated,
    Role,
    Severity,
    SignalShare,
    Slope,
    TopicChanged,
    Turn,
    TurnShare,
)
from models.events.user import FactCategory, SessionTurns
from streams.api.live.messages import RoleRow
from tests.support import live_made
from tests.support.api_tenants import topic_of, user_events_of
from tests.support.live_made import AT

HOSTILE = '<img src=x onerror="window.injected=1"><script>window.injected=1</script>'
"""Shown as it stands, or the page is broken. `window.injected` tells."""
TURNS = 42
"""Of a session of which everything is remembered."""
_APPS = ("support", "tutor", "companion")
_MODES = ((0.75, Mode.CRITICAL), (0.55, Mode.ELEVATED), (0.35, Mode.WATCH))


def session(
    number: int, *, risk: float | None = None, session_id: str | None = None, points: int = 8, **more: Any
) -> ProfileUpdated:
    """A session's profile; the same number gives the same one."""
    chance = random.Random(number)
    end = chance.betavariate(1.3, 4) if risk is None else risk
    scores = [end * (0.35 + 0.65 * n / points) * (1 - 0.1 * chance.random()) for n in range(1, points)]
    turns: int = more.pop("turns", chance.randint(points, 400))
    made = live_made.profile(
        session_id or f"session-{number:05}",
        app=more.pop("app", _APPS[number % 3]),
        user=f"user-{number % 997}",
        at=AT - timedelta(seconds=chance.randint(0, 2_000)),
        scores=[*scores, end],
        first=turns - points,
        mode=next((mode for limit, mode in _MODES if end >= limit), Mode.CALM),
        slope=Slope(chance.uniform(-0.01, 0.02), 0.01, points),
    )
    return structs.replace(made, **more)


def alert(number: int, of: ProfileUpdated, **more: Any) -> AlertChanged:
    """An alert on a session: every third number a critical one, which the model judged."""
    critical = number % 3 == 0
    made = live_made.alert(
        of.session_id,
        f"alert-{number:04}",
        app=of.app_id,
        user=of.user_id,
        at=AT - timedelta(minutes=number),
        evidence=(12, 18, 27, 30),
        judged=critical,
        turn=30,
        severity=Severity.CRITICAL if critical else Severity.WARNING,
        reason="escalates with probability 0.91; strongest: pressure, repeated demands"
        if critical
        else "risk rose for 12 turns",
        score=0.91 if critical else 0.61,
        signals=[
            SignalShare(name, share, share)
            for name, share in (("pressure", 0.41), ("repeated_demands", 0.27), ("risk_slope", 0.19), ("tone", 0.13))
        ],
    )
    if made.escalation is not None:
        added = [TurnShare(turn, 0.9 - (30 - turn) ** 2 / 120) for turn in range(15, 31)]
        made = structs.replace(made, escalation=structs.replace(made.escalation, turns=added))
    return structs.replace(made, **more)


def acknowledged(of: AlertChanged) -> AlertChanged:
    """What the session's role makes of an acknowledgement."""
    return structs.replace(of, status=AlertStatus.ACKNOWLEDGED, cause="acknowledged")


def resolved(of: AlertChanged) -> AlertChanged:
    """What the session's role makes of it when the risk has fallen."""
    return structs.replace(of, status=AlertStatus.RESOLVED, cause="resolved")


def risk_at(turn: int, turns: int = TURNS) -> float:
    """The risk of a turn in a conversation that grows worse in its middle."""
    return max(0.0, min(1.0, 0.1 + 0.75 / (1 + math.exp((turns / 2 - turn) / 4)) + 0.05 * math.sin(turn)))


def said(of: ProfileUpdated, turns: int = TURNS) -> Iterator[Turn]:
    """What was said in a session, hostile to a page."""
    for number in range(turns):
        yield Turn(
            session_id=of.session_id,
            user_id=of.user_id,
            app_id=of.app_id,
            turn=number,
            role=(Role.USER, Role.ASSISTANT)[number % 2],
            content=f"What was said in turn {number}. {HOSTILE}",
            timestamp=AT + timedelta(minutes=number),
            risk=risk_at(number, turns),
        )


def topic(of: ProfileUpdated) -> TopicChanged:
    """What it was about."""
    made = topic_of("a", of.session_id)
    return structs.replace(
        made, app_id=of.app_id, user_id=of.user_id, title=f"{HOSTILE} title", message_count=12, session_topics=1
    )


def facts(of: ProfileUpdated) -> list[FactChanged]:
    """What it told of its user: one that holds, one that was put right since."""
    made = structs.replace(user_events_of("a", of.user_id, of.session_id)[0], app_id=of.app_id)
    return [
        structs.replace(made, value=f"{HOSTILE} value"),
        structs.replace(made, category=FactCategory.PREFERENCE, key="editor", value="a plain one", active=False),
    ]


def episode(of: ProfileUpdated) -> EpisodeCompressed:
    """Its turns in short."""
    made = user_events_of("a", of.user_id, of.session_id)[1]
    turns = [SessionTurns(of.session_id, list(range(20)))]
    return structs.replace(made, app_id=of.app_id, turns=turns, summary=f"{HOSTILE} summary")


ROLES = [
    RoleRow(role="sessions", state="ready", detail="ready", lag_records=0),
    RoleRow(role="memory", state="ready", detail="ready", lag_records=12),
    RoleRow(role="index", state="not_ready", detail="recovering 3 of 4 partitions", lag_records=12_840),
    RoleRow(role="archive", state="away", detail="http://127.0.0.1:8703 does not answer (ConnectError)"),
    RoleRow(role="judge", state="unknown", detail="not checked yet"),
]
