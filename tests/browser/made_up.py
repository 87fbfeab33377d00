"""Made-up sessions, alerts and timelines as the live page is told them; nothing here was said by anybody."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

Row = dict[str, Any]

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
MODES = ("calm", "watch", "elevated", "critical")
HOSTILE = '<img src=x onerror="window.injected=1"><script>window.injected=1</script>'
"""Shown as it stands, or the page is broken. `window.injected` tells."""


def mode_of(risk: float) -> str:
    """The mode of a risk, without hysteresis."""
    return MODES[sum(risk >= limit for limit in (0.35, 0.55, 0.75))]


def session(number: int, *, risk: float | None = None, session_id: str | None = None, **others: object) -> Row:
    """A session; the same number gives the same one."""
    chance = random.Random(number)
    end = chance.betavariate(1.3, 4) if risk is None else risk
    spark = [
        min(1.0, max(0.0, end * (0.35 + 0.65 * i / 39) + 0.07 * math.sin(i / 3 + number) * chance.random()))
        for i in range(39)
    ]
    turns = chance.randint(3, 400)
    return {
        "session_id": session_id or f"session-{number:05}",
        "app_id": chance.choice(("support", "tutor", "companion")),
        "user_id": f"user-{number % 997}",
        "risk": end,
        "peak_risk": max(end, *spark),
        "slope": chance.uniform(-0.01, 0.02),
        "mode": mode_of(end),
        "turns": turns,
        "last_turn": turns,
        "started_at": _at(-chance.randint(3_000, 30_000)),
        "updated_at": _at(-chance.randint(0, 2_000)),
        "open": True,
        "spark": [*spark, end],
        "alert": None,
    } | others


def alert(number: int, of: Mapping[str, Any], **others: object) -> Row:
    """An alert on a session."""
    critical = number % 3 == 0
    return {
        "alert_id": f"alert-{number:04}",
        "session_id": of["session_id"],
        "app_id": of["app_id"],
        "user_id": of["user_id"],
        "severity": "critical" if critical else "warning",
        "status": "firing",
        "cause": "raised",
        "reason": "probability 0.91 is above 0.68; strongest: pressure, repeated demands, risk slope"
        if critical
        else "risk rose for 12 turns; strongest: tone, risk slope",
        "score": 0.83 if critical else 0.61,
        "probability": 0.91 if critical else None,
        "turn": 30,
        "evidence": [12, 18, 27, 30],
        "fired_at": _at(-60 * number),
        "updated_at": _at(-30 * number),
        "trace_id": f"{number:032x}",
        "label": None,
    } | others


def timeline(of: Mapping[str, Any], alerts: list[Row], *, turns: int = 42, text: bool = False) -> Row:
    """Everything about one session."""
    risks = [max(0.0, min(1.0, 0.1 + 0.75 / (1 + math.exp(-(i - 20) / 4)) + 0.05 * math.sin(i))) for i in range(turns)]
    evidence = {turn: each["alert_id"] for each in alerts for turn in each["evidence"]}
    return {
        "session": of,
        "turns": [
            {
                "turn": i,
                "role": "user" if i % 2 == 0 else "assistant",
                "timestamp": _at(60 * i),
                "risk": risk,
                "evidence": [evidence[i]] if i in evidence else [],
            }
            for i, risk in enumerate(risks)
        ],
        "modes": [
            {"turn": 17, "from_mode": "calm", "to_mode": "watch", "at": _at(60 * 17)},
            {"turn": 22, "from_mode": "watch", "to_mode": "elevated", "at": _at(60 * 22)},
            {"turn": 27, "from_mode": "elevated", "to_mode": "critical", "at": _at(60 * 27)},
        ],
        "segments": [
            {"first_turn": 0, "last_turn": 9, "tokens_before": 1840, "tokens_after": 120},
            {"first_turn": 10, "last_turn": 19, "tokens_before": 2010, "tokens_after": 131},
        ],
        "topics": [
            {
                "topic": f"topic-{i}",
                "title": f"{HOSTILE} title {i}" if text else None,
                "importance": 0.9 - i / 5,
                "message_count": 12 - 3 * i,
                "state": ("active", "kept", "gone")[i],
            }
            for i in range(3)
        ],
        "facts": [
            {"category": "identity", "key": "name", "value": f"{HOSTILE} value" if text else None, "active": True},
            {"category": "preference", "key": "editor", "value": "a plain one" if text else None, "active": False},
        ],
        "episodes": [
            {"episode": 0, "first_turn": 0, "last_turn": 19, "summary": f"{HOSTILE} summary" if text else None}
        ],
        "alerts": [
            each
            | {
                "signals": [
                    {"name": "pressure", "share": 0.41},
                    {"name": "repeated_demands", "share": 0.27},
                    {"name": "risk_slope", "share": 0.19},
                    {"name": "tone", "share": 0.13},
                ],
                "contributions": [{"turn": turn, "weight": 0.9 - (30 - turn) ** 2 / 120} for turn in range(15, 31)],
                "counterfactual": "Without turns 18 and 27 the probability would have been 0.52, below 0.68.",
            }
            for each in alerts
        ],
    }


def said(first: int, last: int, turns: int = 42) -> list[Row]:
    """Text of turns, hostile to a page."""
    return [
        {
            "turn": i,
            "role": "user" if i % 2 == 0 else "assistant",
            "content": f"What was said in turn {i}. {HOSTILE}",
            "timestamp": _at(60 * i),
        }
        for i in range(first, min(last, turns - 1) + 1)
    ]


ROLES: list[Row] = [
    {"role": "sessions", "state": "ready", "detail": "ready", "lag_records": 0},
    {"role": "memory", "state": "ready", "detail": "ready", "lag_records": 12},
    {"role": "index", "state": "not_ready", "detail": "recovering 3 of 4 partitions", "lag_records": 12_840},
    {"role": "archive", "state": "away", "detail": "nothing answers", "lag_records": None},
    {"role": "judge", "state": "unknown", "detail": "", "lag_records": None},
]


def _at(seconds: float) -> str:
    return (AT + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
