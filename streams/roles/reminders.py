"""Reminders of due work to spaces and projects: not too often, and none before there was time to answer."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from models.entities import entity_key
from models.events import CompactionRequested, MemoryRequested, space_key
from models.state.entity import Due

TELL_AGAIN_S: Final = 30.0
"""What was told takes a moment to come back, and the broker's clock may be behind."""


class Reminders:
    """Remembers what was asked and told. Times are of a clock that only goes on, in seconds.

    A worker that was away folds an hour of its log in a moment: by the log's own clock every answer is overdue then,
    though nobody had time to give it. So the time to answer begins when the request goes out, or, of requests of
    before, when this worker first sees that they are overdue.

    Args:
        answer_within: Time to answer.
    """

    def __init__(self, answer_within: timedelta) -> None:
        self._answer_within_s = answer_within.total_seconds()
        self._asked: dict[str, float] = {}
        self._told: dict[Due, float] = {}

    def asked(self, request: MemoryRequested | CompactionRequested, now_s: float) -> None:
        """A request goes out."""
        self._asked[entity_key(request)] = now_s

    def choose(self, due: Iterable[Due], now_s: float, most: int) -> list[Due]:
        """Those that are reminded now, at most so many; the others with a later call."""
        self._forget(now_s)
        ripe = [each for each in due if each not in self._told and self._had_time(each, now_s)][:most]
        self._told.update(dict.fromkeys(ripe, now_s))
        return ripe

    def _had_time(self, space: Due, now_s: float) -> bool:
        if not space.awaits_answer:
            return True
        asked_s = self._asked.setdefault(space_key(space.app_id, space.name), now_s)
        return now_s - asked_s >= self._answer_within_s

    def _forget(self, now_s: float) -> None:
        kept_s = self._answer_within_s + 2 * TELL_AGAIN_S
        self._told = {each: told_s for each, told_s in self._told.items() if now_s - told_s < TELL_AGAIN_S}
        self._asked = {key: asked_s for key, asked_s in self._asked.items() if now_s - asked_s < kept_s}
