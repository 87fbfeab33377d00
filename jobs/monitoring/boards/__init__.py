"""One file per dashboard."""

from __future__ import annotations

from jobs.monitoring.boards.memory import MEMORY
from jobs.monitoring.boards.overview import OVERVIEW
from jobs.monitoring.boards.role import ROLE
from jobs.monitoring.boards.sessions import SESSIONS
from jobs.monitoring.boards.stores import STORES

BOARDS = (OVERVIEW, SESSIONS, MEMORY, STORES, ROLE)

UNSHOWN: dict[str, str] = {}
"""Metrics that no panel shows, each with the reason: who asks for them, and how."""
