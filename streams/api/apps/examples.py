"""Examples in the contract of memories of apps and of erasures."""

from __future__ import annotations

from typing import Any

APP_ID = "support"
MEMORY_ID = 7
REQUEST_ID = "5b0f9a2c7d1e4c63a8f20b94e6d3c718"
_AT = "2026-03-01T12:00:00Z"
_LATER = "2026-03-01T12:19:00Z"

MEMORY: dict[str, Any] = {
    "id": MEMORY_ID,
    "appId": APP_ID,
    "content": "User prefers pgvector, since Postgres runs there already. User decided to move in April.",
    "createdAt": _AT,
    "updatedAt": _LATER,
    "sourceConversationId": "order-4711",
    "metadata": {"importance": 7.5, "tags": ["decision", "pgvector"], "relatedConversations": ["order-4711"]},
    "pinned": True,
    "sharedWith": ["sales"],
    "conflictsWith": [],
    "madeBy": "rules",
}
MEMORIES: dict[str, Any] = {"memories": [MEMORY]}
FOUND: dict[str, Any] = {"memories": [{**MEMORY, "score": 1.6}]}
EDIT: dict[str, Any] = {"content": MEMORY["content"], "importance": 7.5, "pinned": True, "sharedWith": ["sales"]}
EDITED: dict[str, Any] = {"success": True, "memory": MEMORY}
PURGED: dict[str, Any] = {"success": True, "deletedCount": 8}
DELETED: dict[str, Any] = {"success": True}
UNINSTALL: dict[str, Any] = {"purgeMemories": False}
UNINSTALLED: dict[str, Any] = {"success": True, "purged": False, "deletedCount": 0}
PENDING: dict[str, Any] = {
    "success": False,
    "pending": True,
    "requestId": REQUEST_ID,
    "hint": "the command is in the log and will be carried out, once",
}
EXPORTED: dict[str, Any] = {
    "format": "turntide.app-memories",
    "version": 1,
    "appId": APP_ID,
    "userId": "",
    "exportedAt": _LATER,
    "memories": [MEMORY],
}
STATS: dict[str, Any] = {
    "appId": APP_ID,
    "userId": "",
    "known": True,
    "memories": 1,
    "pinned": 1,
    "shared": 1,
    "conflicting": 0,
    "created": 14,
    "compactions": 4,
    "skipped": 1,
    "edited": 2,
    "waiting": 0,
    "uninstalled": False,
    "energy": {"levelUnits": 9_740.0, "capacityUnits": 10_000.0, "spentUnits": 260.0, "spentSinceUnits": None},
}
SPACES: dict[str, Any] = {
    "spaces": [{"appId": APP_ID, "userId": "", "memories": 1, "uninstalled": False}],
    "more": False,
}
STATISTICS: dict[str, Any] = {
    "at": _LATER,
    "totals": {
        "spaces": 1,
        "withMemories": 1,
        "memories": 1,
        "conflicting": 0,
        "created": 14,
        "compactions": 4,
        "skipped": 1,
        "edited": 2,
        "waiting": 0,
        "spentUnits": 260.0,
    },
    "spaces": [STATS],
    "more": False,
}
PAGE = "<!doctype html>…"
ERASE: dict[str, Any] = {"user_id": "user-17", "app_id": APP_ID}
ACCEPTED: dict[str, Any] = {"request_id": REQUEST_ID, "scope": "user", "status": f"/v1/erase/{REQUEST_ID}"}
ERASURE: dict[str, Any] = {
    "request_id": REQUEST_ID,
    "proved": True,
    "proof": {
        "type": "erasure_proved",
        "request_id": REQUEST_ID,
        "timestamp": _LATER,
        "scope": "user",
        "subject": "9c1185a5c5e9fc54612808977ee8f548b2258d31b7c5d6bb5a0e3e1a6d0e4b6f",
        "by": "local",
        "requested_at": _AT,
        "sessions": 2,
        "stores": [
            {"store": "archive turns", "looked_at": 1_204, "removed": 21, "remaining": 0, "expires_at": None},
        ],
        "complete": True,
    },
}
