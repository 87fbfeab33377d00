"""Events of apps' memories as the memory role writes them, for stores and readers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from models.events import AppMemoriesChanged, AppMemoryChanged, CommandResult, Position
from streams.http import security
from streams.http.security import Caller

NOW = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)


def memory(slot: int, content: str = "The user spoke of boats.", *, app: str = "a", **more: Any) -> AppMemoryChanged:
    """A memory that is there; its number is the slot's plus 1, and it changed that many minutes after nine thirty."""
    changed = NOW + timedelta(minutes=slot)
    fields: dict[str, Any] = {
        "id": f"{app}-{slot}",
        "session_id": f"s{slot}",
        "user_id": "u",
        "app_id": app,
        "timestamp": changed,
        "source": Position("commands", 0, slot),
        "space": "app",
        "slot": slot,
        "memory_id": slot + 1,
        "active": True,
        "cause": "created",
        "content": content,
        "importance": 0.5,
        "tags": ["sea"],
        "related_conversations": [],
        "created_at": NOW,
        "updated_at": changed,
        "pinned": False,
        "shared_with": [],
        "conflicts_with": [],
        "made_by": "extractive",
    }
    return AppMemoryChanged(**fields | more)


def gone(slot: int, **more: Any) -> AppMemoryChanged:
    """A memory that went, and its text with it."""
    return memory(slot, "", active=False, cause="deleted", tags=[], **more)


def standing(app: str = "a", **more: Any) -> AppMemoriesChanged:
    """How far a space is, after an admin's command."""
    fields: dict[str, Any] = {
        "id": f"{app}-standing",
        "session_id": "",
        "user_id": "u",
        "app_id": app,
        "timestamp": NOW,
        "source": Position("commands", 3, 70),
        "space": "app",
        "memories": 2,
        "created": 5,
        "compactions": 1,
        "skipped": 1,
        "edited": 1,
        "waiting": 0,
        "energy_units": 80.5,
        "energy_capacity_units": 100.0,
        "spent_units": 19.5,
        "uninstalled": False,
        "results": [CommandResult(request_id="r", outcome="done", count=1)],
    }
    return AppMemoriesChanged(**fields | more)


@contextmanager
def asked_by(*apps: str) -> Iterator[None]:
    """As within a request of a caller of these apps; of nobody's, without."""
    token = security._caller.set(Caller(frozenset(apps) or None))
    try:
        yield
    finally:
        security._caller.reset(token)
