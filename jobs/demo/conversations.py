"""The demo's conversations: written for it, one TOML file each, and when each of their events happens.

They are people's ordinary business and two escalations that hold nothing but category words and refusals. What they
are about is a fixed part of the demo, so that a newcomer can compare: `expected_alert` says which must alert.
"""

from __future__ import annotations

import tomllib
from datetime import datetime, timedelta
from enum import StrEnum
from importlib.resources import files

import msgspec
from msgspec import Struct

from models.events import AlertAcknowledged, InputEvent, Role, SessionEnded, Turn

_THINKING = {Role.USER: timedelta(seconds=7), Role.ASSISTANT: timedelta(seconds=2)}
_CHARS_PER_S = {Role.USER: 6.0, Role.ASSISTANT: 40.0}
"""How fast people read and type, and how fast an assistant writes."""
_AFTERWARDS = timedelta(seconds=20)
"""From the last turn to the event that ends the session, and from an alert to its acknowledgement."""


class Conversation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One conversation as its file has it.

    Attributes:
        title: For people; Turntide never sees it.
        starts_minute: Event time of its first turn, minutes after the play's beginning.
        turns: Speaker to words, one pair each.
        expected_alert: Whether exactly this session must alert.
        ends: Whether a `session_ended` follows, or it is left open.
        acknowledged_after_turn: Turn number after which on-call acknowledges the alert.
        shows_topics: Whether topics of this session must start, be packed and unpacked, and be evicted.
    """

    session_id: str
    title: str
    app_id: str
    user_id: str
    starts_minute: float
    turns: list[dict[Role, str]]
    expected_alert: bool
    ends: bool
    acknowledged_after_turn: int | None = None
    shows_topics: bool = False


class Act(StrEnum):
    """What a cue asks for."""

    TURN = "turn"
    ACKNOWLEDGE = "acknowledge"
    END = "end"


class Cue(Struct, frozen=True):
    """One event to be sent.

    Attributes:
        at: Event time after the play's beginning.
        conversation: Whose event.
        act: What happens.
        turn: Number of the turn said, or of the last one said.
    """

    at: timedelta
    conversation: Conversation
    act: Act
    turn: int

    def event(self, began: datetime, alert_id: str | None = None) -> InputEvent:
        """The event itself.

        Args:
            began: Event time of the play's beginning, aware.
            alert_id: Of the session's alert, for an acknowledgement.
        """
        of, timestamp = self.conversation, began + self.at
        if self.act is Act.END:
            return SessionEnded(session_id=of.session_id, timestamp=timestamp, reason="said goodbye")
        if self.act is Act.ACKNOWLEDGE:
            return AlertAcknowledged(
                session_id=of.session_id,
                timestamp=timestamp,
                alert_id=alert_id or "",
                by="on-call",
                note="reading along",
            )
        ((role, content),) = of.turns[self.turn].items()
        return Turn(
            session_id=of.session_id,
            user_id=of.user_id,
            app_id=of.app_id,
            turn=self.turn,
            role=role,
            content=content,
            timestamp=timestamp,
        )


def load_conversations() -> list[Conversation]:
    """All conversations of the demo, the earliest first.

    Raises:
        msgspec.ValidationError: A file is wrong: a defect of the package.
    """
    folder = files("jobs.demo") / "conversations"
    read = [
        msgspec.convert(tomllib.loads(file.read_text("utf-8")), Conversation)
        for file in folder.iterdir()
        if file.name.endswith(".toml")
    ]
    return sorted(read, key=lambda conversation: (conversation.starts_minute, conversation.session_id))


def schedule(conversations: list[Conversation]) -> list[Cue]:
    """Every event of the play in the order of event time; within a session strictly increasing."""
    cues = [cue for conversation in conversations for cue in _cues(conversation)]
    return sorted(cues, key=lambda cue: (cue.at, cue.conversation.session_id))


def _cues(conversation: Conversation) -> list[Cue]:
    at = timedelta(minutes=conversation.starts_minute)
    cues = []
    for number, turn in enumerate(conversation.turns):
        ((role, content),) = turn.items()
        at += _THINKING[role] + timedelta(seconds=round(len(content) / _CHARS_PER_S[role], 3))
        cues.append(Cue(at, conversation, Act.TURN, number))
        if number == conversation.acknowledged_after_turn:
            at += _AFTERWARDS
            cues.append(Cue(at, conversation, Act.ACKNOWLEDGE, number))
    if conversation.ends:
        cues.append(Cue(at + _AFTERWARDS, conversation, Act.END, len(conversation.turns) - 1))
    return cues
