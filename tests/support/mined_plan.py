"""The plan of the planted archive: whose session it is, how its risk goes, and what is said. See `mined_archive`."""

import tomllib
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from models.events import Role, SessionEnded, Turn

FIRST = date(2026, 3, 2)
DAYS, SESSIONS_A_DAY, USERS = 14, 10, 31
APPS = ("support", "tutor", "planner")
BEGIN = datetime(FIRST.year, FIRST.month, FIRST.day, tzinfo=UTC)
_SECOND_WEEK = 7
_CAMPAIGN_DAYS, _CAMPAIGN_RISK = range(8, 11), 0.7
_CALM, _HIGH, _NOISE, _PRESSING_FROM = 0.08, 0.85, 0.02, 0.4
_TALK: dict[str, Any] = tomllib.loads((Path(__file__).parent / "data" / "mined_talk.toml").read_text("utf-8"))
MATTERS: dict[str, list[str]] = _TALK["matters"]
"""Sentences by matter; the last one is new in the second week."""
_MATTERS = tuple(MATTERS)


class Planted(Struct, frozen=True):
    """One session of the plan."""

    day: int
    number: int

    @property
    def session_id(self) -> str:
        """Names its day and number."""
        return f"s-{self.day:02}-{self.number}"

    @property
    def user_id(self) -> str:
        """Users come round."""
        return f"u-{(self.day * SESSIONS_A_DAY + self.number) % USERS:02}"

    @property
    def app_id(self) -> str:
        """By its number."""
        return APPS[self.number % len(APPS)]

    @property
    def begun(self) -> datetime:
        """A session an hour from six o'clock on."""
        return BEGIN + timedelta(days=self.day, hours=6 + self.number)

    @property
    def questions(self) -> int:
        """Messages of the user, 12-16; each has an answer."""
        return 12 + (self.day + self.number) % 5

    @property
    def rises(self) -> bool:
        """Whether it escalates."""
        return self.number in {0, 1} or (self.number == 4 and self.day >= _SECOND_WEEK)

    @property
    def drifted(self) -> bool:
        """Whether it is one of those that changed with the second week."""
        return self.app_id == "planner" and self.day >= _SECOND_WEEK

    def level(self, done: float) -> float:
        """Risk without noise when a share of the session is behind."""
        if self.number == 0:
            risk = _CALM + (_HIGH - _CALM) * min(1.0, max(0.0, (done - 0.7) / 0.1))
        elif self.rises:
            risk = _CALM + (_HIGH - _CALM) * min(1.0, max(0.0, (done - 0.25) / 0.1))
        elif self.number == 2:
            risk = _CALM + 0.2 * done
        elif self.number == 9:
            risk = 0.6 if done < 0.25 else _CALM
        else:
            risk = _CALM
        return risk + 0.06 * self.drifted

    def said(self, n: int, risk: float) -> str:
        """The n-th question."""
        if risk >= _PRESSING_FROM and self.rises:
            return str(_TALK["pressing"][n % len(_TALK["pressing"])])
        matter = (self.day + self.number) % (len(_MATTERS) - 1)
        if self.number == 3:
            matter = (n // 3) % 2
        elif self.number in {6, 8} and self.day >= _SECOND_WEEK:
            matter = len(_MATTERS) - 1
        sentences = MATTERS[_MATTERS[matter]]
        supposing = _TALK["supposing"] if self.rises and n == 1 else ""
        return str(supposing + sentences[n % len(sentences)] + _TALK["long_winded"] * self.drifted)

    @property
    def campaigns(self) -> bool:
        """Whether one of its messages is the campaign's."""
        return self.day in _CAMPAIGN_DAYS and self.number in range(5, 9)


PLAN = tuple(Planted(day, number) for day in range(DAYS) for number in range(SESSIONS_A_DAY))
"""All sessions, in the order of time."""


def inputs(planted: Planted) -> Iterator[Turn | SessionEnded]:
    """What the session's people and its end put on the log, in order."""
    noise = np.random.default_rng(planted.day * SESSIONS_A_DAY + planted.number).normal(0, _NOISE, planted.questions)
    said = Turn(
        session_id=planted.session_id,
        user_id=planted.user_id,
        app_id=planted.app_id,
        turn=0,
        role=Role.USER,
        content="",
        timestamp=planted.begun,
    )
    for n in range(planted.questions):
        risk = min(1.0, max(0.0, planted.level(n / planted.questions) + float(noise[n])))
        question = planted.said(n, risk)
        if planted.campaigns and n == planted.questions // 2:
            endings = _TALK["campaign_endings"]
            ending = endings[(planted.day + planted.number) % len(endings)]
            question, risk = _TALK["campaign"].format(ending), _CAMPAIGN_RISK
        time = planted.begun + timedelta(minutes=2 * n)
        yield replace(said, turn=2 * n, content=question, timestamp=time, risk=round(risk, 4))
        answer = _TALK["refusal" if question in _TALK["pressing"] else "answer"]
        time += timedelta(seconds=20)
        yield replace(said, turn=2 * n + 1, role=Role.ASSISTANT, content=answer, timestamp=time)
    ended = planted.begun + timedelta(minutes=2 * planted.questions)
    yield SessionEnded(session_id=planted.session_id, timestamp=ended)
