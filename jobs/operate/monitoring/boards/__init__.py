"""One file per dashboard."""

from __future__ import annotations

from jobs.operate.monitoring.boards.memory import MEMORY
from jobs.operate.monitoring.boards.overview import OVERVIEW
from jobs.operate.monitoring.boards.role import ROLE
from jobs.operate.monitoring.boards.sessions import SESSIONS
from jobs.operate.monitoring.boards.stores import STORES

BOARDS = (OVERVIEW, SESSIONS, MEMORY, STORES, ROLE)

UNSHOWN: dict[str, str] = {}
"""Metrics that no panel shows, each with the reason: who asks for them, and how."""
