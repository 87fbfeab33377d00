"""Examples in the contract of `/v1/live`: one session with an alert."""

from __future__ import annotations

from typing import Any

from streams.api.users.examples import APP_ID, SESSION_ID, TOPIC_ID, USER_ID

_AT = "2026-03-01T12:00:00Z"
_LATER = "2026-03-01T12:19:00Z"
ALERT_ID = "1b4e28ba-2fa1-51d2-883f-0016d3cca427"

ME: dict[str, Any] = {"name": "on-call", "role": "operator", "text": False, "apps": [APP_ID], "tokens": True}
ROW: dict[str, Any] = {
    "session_id": SESSION_ID,
    "app_id": APP_ID,
    "user_id": USER_ID,
    "risk": 0.82,
    "peak_risk": 0.9,
    "slope": 0.04,
    "mode": "critical",
    "turns": 21,
    "last_turn": 20,
    "started_at": _AT,
    "updated_at": _LATER,
    "open": True,
    "spark": [0.1, 0.31, 0.82],
    "alert": {"alert_id": ALERT_ID, "severity": "critical", "status": "firing"},
}
ALERT: dict[str, Any] = {
    "alert_id": ALERT_ID,
    "session_id": SESSION_ID,
    "app_id": APP_ID,
    "user_id": USER_ID,
    "severity": "critical",
    "status": "firing",
    "cause": "raised",
    "reason": "risk rose over the last turns",
    "score": 0.82,
    "probability": 0.82,
    "turn": 20,
    "evidence": [18, 20],
    "fired_at": _LATER,
    "updated_at": _LATER,
    "trace_id": "0af7651916cd43dd8448eb211c80319c",
    "label": None,
}
ROLE: dict[str, Any] = {"role": "sessions", "state": "ready", "detail": "ready", "lag_records": 0}
SNAPSHOT: dict[str, Any] = {"sessions": [ROW], "alerts": [ALERT], "roles": [ROLE], "more": False}
CHANGES: dict[str, Any] = {"sessions": [ROW], "gone": [], "alerts": []}
STREAM = 'event: changes\nid: 7\ndata: {"sessions":[],"gone":["order-4711"],"alerts":[]}\n\n'
TIMELINE: dict[str, Any] = {
    "session": ROW,
    "turns": [{"turn": 20, "role": "user", "timestamp": _LATER, "risk": 0.9, "evidence": [ALERT_ID]}],
    "modes": [{"turn": 20, "from_mode": "calm", "to_mode": "critical", "at": _LATER}],
    "segments": [{"first_turn": 0, "last_turn": 9, "tokens_before": 900, "tokens_after": 120}],
    "topics": [{"topic": TOPIC_ID, "title": None, "importance": 0.5, "message_count": 14, "state": "active"}],
    "facts": [{"category": "identity", "key": "name", "value": None, "active": True}],
    "episodes": [{"episode": 1, "first_turn": 1, "last_turn": 20, "summary": None}],
    "alerts": [
        {
            **ALERT,
            "signals": [{"name": "level", "share": 0.7}, {"name": "slope", "share": 0.3}],
            "contributions": [{"turn": 18, "weight": 1.2}, {"turn": 20, "weight": 2.1}],
            "counterfactual": "Without level it would be 0.21: no alert.",
        }
    ],
}
SAID: dict[str, Any] = {
    "turns": [{"turn": 20, "role": "user", "content": "Which database fits our vectors?", "timestamp": _LATER}]
}
HITS: dict[str, Any] = {
    "hits": [
        {
            "kind": "facts",
            "session_id": SESSION_ID,
            "turn": 0,
            "user_id": USER_ID,
            "app_id": APP_ID,
            "score": 1.0,
            "text": "name: Alex",
        }
    ]
}
ACKNOWLEDGE: dict[str, Any] = {"session_id": SESSION_ID, "note": "looking at it"}
LABEL: dict[str, Any] = {"session_id": SESSION_ID, "label": False, "reason": "security homework"}
WRITTEN: dict[str, Any] = {"topic": "turns.v1", "partition": 3, "offset": 90_211}
