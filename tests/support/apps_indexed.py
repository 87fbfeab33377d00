"""Events of apps' memories as the memory role writes them, for stores and readers."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from models.events import AppMemoriesChanged, AppMemoryChanged, CommandResult, Position
from streams.http import security
from streams.http.security import Caller
from tests.support.blank_events import BLANK_AT, blank

NOW = BLANK_AT


def memory(slot: int, content: str = "The user spoke of boats.", *, app: str = "a", **more: Any) -> AppMemoryChanged:
    """A memory that is there; its number is the slot's plus 1, and it changed that many minutes after nine thirty."""
    changed = NOW + timedelta(minutes=slot)
    given: dict[str, Any] = {
        "id": f"{app}-{slot}",
        "session_id": f"s{slot}",
        "user_id": "u",
        "timestamp": changed,
        "space": "app",
        "memory_id": slot + 1,
        "active": True,
        "tags": ["sea"],
        "created_at": NOW,
        "updated_at": changed,
    }
    return blank(AppMemoryChanged, app_id=app, slot=slot, content=content, **given | more)


def gone(slot: int, **more: Any) -> AppMemoryChanged:
    """A memory that went, and its text with it."""
    return memory(slot, "", active=False, tags=[], **more)


def stats(app: str = "a", **more: Any) -> AppMemoriesChanged:
    """How far a space is, after an admin's command."""
    given: dict[str, Any] = {
        "user_id": "u",
        "source": Position("commands", 3, 70),
        "space": "app",
        "memories": 2,
        "energy_units": 80.5,
        "results": [CommandResult(request_id="r", outcome="done", count=1)],
    }
    return blank(AppMemoriesChanged, app_id=app, timestamp=NOW, **given | more)


@contextmanager
def asked_by(*apps: str) -> Iterator[None]:
    """As within a request of a caller of these apps; of nobody's, without."""
    token = security._caller.set(Caller(frozenset(apps) or None))
    try:
        yield
    finally:
        security._caller.reset(token)
