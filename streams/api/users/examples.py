"""Examples in the contract: one small conversation, seen through every route."""

from __future__ import annotations

from typing import Any

USER_ID = "user-17"
APP_ID = "support"
SESSION_ID = "order-4711"
TOPIC_ID = "6f1a3c50-4c4e-5a57-9f6e-0a8f3f6f2d11"
QUERY = "What did we discuss about databases?"
_AT = "2026-03-01T12:00:00Z"
_LATER = "2026-03-01T12:19:00Z"

FACT: dict[str, Any] = {
    "app_id": APP_ID,
    "user_id": USER_ID,
    "category": "identity",
    "key": "name",
    "value": "Alex",
    "confidence": 1.0,
    "importance": 0.9,
    "active": True,
    "valid_from": _AT,
    "valid_until": None,
    "session_id": SESSION_ID,
    "turn": 0,
    "extracted_by": "rules",
}
EPISODE: dict[str, Any] = {
    "app_id": APP_ID,
    "user_id": USER_ID,
    "episode": 1,
    "turn_range": "turns 1-20",
    "turn_start": 1,
    "turn_end": 20,
    "summary": "User asked about vector databases. Discussed FAISS vs pgvector.",
    "summarised_by": "extractive",
    "key_topics": ["databases", "pgvector"],
    "started_at": _AT,
    "ended_at": _LATER,
    "distance": 0.12,
}
TURN: dict[str, Any] = {
    "app_id": APP_ID,
    "user_id": USER_ID,
    "session_id": SESSION_ID,
    "turn": 20,
    "role": "user",
    "timestamp": _LATER,
    "content": QUERY,
}
SIMILAR_TURN: dict[str, Any] = {**TURN, "risk": 0.02, "similarity": 0.81, "partition": 3, "event_offset": 90_210}
INJECTION = (
    "## User Profile\n- name: Alex\n\n## Recent Context\n"
    "- turns 1-20: User asked about vector databases. Discussed FAISS vs pgvector...."
)
RETRIEVE: dict[str, Any] = {
    "user_id": USER_ID,
    "app_id": APP_ID,
    "query": QUERY,
    "top_k_episodes": 3,
    "after": {"session_id": SESSION_ID, "turn": 20, "timeout_ms": 2_000},
}
RETRIEVED: dict[str, Any] = {"structured_facts": [FACT], "episodic_context": [EPISODE], "injection": INJECTION}
CONTEXT: dict[str, Any] = {
    "user_id": USER_ID,
    "app_id": APP_ID,
    "session_id": SESSION_ID,
    "query": QUERY,
    "token_budget": 2_000,
    "recent_turns": 10,
}
ASSEMBLED: dict[str, Any] = {
    "prompt": f"# Long-term Memory\n{INJECTION}\n\n# Recent Conversation\nuser: {QUERY}\n\n"
    "Answer consistently using the memory and conversation above.",
    "tokens": 69,
    "facts": [FACT],
    "episodes": [EPISODE],
    "recent": [TURN],
    "left_out": {"facts": 0, "episodes": 0, "recent": 0, "last_turn_cut": False},
}
SEARCH: dict[str, Any] = {"user_id": USER_ID, "query": "pgvector", "kind": "turns", "top_k": 5}
FOUND: dict[str, Any] = {"turns": [{"score": 1.7, "turn": TURN}], "episodes": []}
STANDING: dict[str, Any] = {
    "user_id": USER_ID,
    "app_id": APP_ID,
    "known": True,
    "turn_count": 21,
    "compressed_turns": 20,
    "short_term": [{"session_id": SESSION_ID, "turn": 20}],
    "facts": 1,
    "episodes": 1,
}
STATS: dict[str, Any] = {
    "topic_id": TOPIC_ID,
    "topic_title": "Which database fits our vectors?",
    "active_messages": 5,
    "compressed_messages": 9,
    "total_messages": 14,
    "has_summary": True,
    "importance_score": 0.5,
    "access_count": 6,
    "memory_type": "transitioning",
    "half_life_days": 2.0,
    "age_seconds": 172_800.0,
    "inactive_seconds": 172_020.0,
}
TOPIC: dict[str, Any] = {
    **STATS,
    "active": True,
    "kept": True,
    "summary": "FAISS and pgvector were compared.",
    "tags": [],
    "created_at": _AT,
    "last_active_at": _LATER,
    "cause": "returned",
    "detail": "",
    "released_messages": 0,
    "similarity": None,
}
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Topic summary: FAISS and pgvector were compared."},
    {"role": "user", "content": QUERY},
]
HISTORY: list[dict[str, Any]] = [{"role": "user", "content": QUERY, "timestamp": 1_772_367_540.0}]
INDEX: dict[str, Any] = {"topic_prefix": "turntide", "turns": 48_213}
METRICS = "turntide_ready 1.0\n"
