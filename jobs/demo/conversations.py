"""The demo's conversations: written for it, one TOML file each, and when each of their events happens.

They are people's ordinary business and two escalations that hold nothing but category words and refusals. What they
are about is a fixed part of the demo, so that a newcomer can compare: `expected_alert` says which must alert.

One is apart (`in_play = false`, `project.toml`): the 250 turns over four weeks in which two people build something, for
what a project's memory is shown and measured with. Benches take no traffic from it; the demo plays it hurried, without
its pauses (`load_play`).
"""

from datetime import datetime, timedelta
from enum import StrEnum
from importlib.resources import files

import msgspec
from msgspec import Struct, structs

from models.events import AlertAcknowledged, InputEvent, Role, SessionEnded, Turn

_THINKING = {Role.USER: timedelta(seconds=7), Role.ASSISTANT: timedelta(seconds=2)}
_CHARS_PER_S = {Role.USER: 6.0, Role.ASSISTANT: 40.0}
"""How fast people read and type, and how fast an assistant writes."""
_AFTERWARDS = timedelta(seconds=20)
"""From the last turn to the event that ends the session, and from an alert to its acknowledgement."""


class Sitting(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stretch of a long conversation: who speaks, and how long after the stretch before.

    Attributes:
        first_turn: Number of its first turn.
        user_id: Whose turns they are.
        after_hours: From the turn before to its first one, beside the time that this takes to be said.
    """

    first_turn: int
    user_id: str
    after_hours: float = 0.0


class DemoConversation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One conversation as its file has it.

    Attributes:
        title: For people; Turntide never sees it.
        starts_minute: Event time of its first turn, minutes after the play's beginning.
        turns: Speaker to words, one pair each.
        expected_alert: Whether exactly this session must alert.
        ends: Whether a `session_ended` follows, or it is left open.
        acknowledged_after_turn: Turn number after which on-call acknowledges the alert.
        shows_topics: Whether topics of this session must start, be packed and unpacked, and be evicted.
        project_id: The project that it belongs to.
        in_play: Whether it belongs to ordinary traffic.
        sittings: Pauses and changes of speaker, in order; none: `user_id` speaks without a pause.
        hurried: So many times faster than people speak.
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
    project_id: str | None = None
    in_play: bool = True
    sittings: list[Sitting] = []
    hurried: float = 1.0

    def sitting_at(self, turn: int) -> Sitting | None:
        """The last one that began by this turn."""
        return next((each for each in reversed(self.sittings) if each.first_turn <= turn), None)


class CueAct(StrEnum):
    """What a cue asks for."""

    TURN = "turn"
    ACKNOWLEDGE = "acknowledge"
    END = "end"


class Cue(Struct, frozen=True):
    """One event to be sent.

    Attributes:
        at: Event time after the play's beginning.
        turn: Number of the turn said, or of the last one said.
    """

    at: timedelta
    conversation: DemoConversation
    act: CueAct
    turn: int

    def event(self, began: datetime, alert_id: str | None = None) -> InputEvent:
        """The event itself.

        Args:
            began: Event time of the play's beginning, aware.
            alert_id: Of the session's alert, for an acknowledgement.
        """
        of, timestamp = self.conversation, began + self.at
        if self.act is CueAct.END:
            return SessionEnded(session_id=of.session_id, app_id=of.app_id, timestamp=timestamp, reason="said goodbye")
        if self.act is CueAct.ACKNOWLEDGE:
            return AlertAcknowledged(
                session_id=of.session_id,
                app_id=of.app_id,
                timestamp=timestamp,
                alert_id=alert_id or "",
                by="on-call",
                note="reading along",
            )
        ((role, content),) = of.turns[self.turn].items()
        sitting = of.sitting_at(self.turn)
        return Turn(
            session_id=of.session_id,
            user_id=sitting.user_id if sitting else of.user_id,
            app_id=of.app_id,
            turn=self.turn,
            role=role,
            content=content,
            timestamp=timestamp,
            project_id=of.project_id,
        )


def load_conversations() -> list[DemoConversation]:
    """All conversations but the project's, the earliest first."""
    return [conversation for conversation in _read() if conversation.in_play]


def load_project_conversation() -> DemoConversation:
    """The 250 turns of a project, over four weeks; `schedule` says when each is said."""
    (conversation,) = (conversation for conversation in _read() if not conversation.in_play)
    return conversation


def load_play() -> list[DemoConversation]:
    """What the demo plays: all conversations, and the project's in as long as they take.

    Were its pauses kept, its session would time out in each, and event time of four weeks pass for the others as well.
    """
    others, project = load_conversations(), load_project_conversation()
    without_pauses = structs.replace(project, sittings=[structs.replace(s, after_hours=0.0) for s in project.sittings])
    takes, has = schedule([without_pauses])[-1].at, schedule(others)[-1].at
    return [*others, structs.replace(without_pauses, hurried=takes / has)]


def _read() -> list[DemoConversation]:
    folder = files("jobs.demo") / "conversations"
    read = [
        msgspec.toml.decode(file.read_bytes(), type=DemoConversation)
        for file in folder.iterdir()
        if file.name.endswith(".toml")
    ]
    return sorted(read, key=lambda conversation: (conversation.starts_minute, conversation.session_id))


def schedule(conversations: list[DemoConversation]) -> list[Cue]:
    """Every event of the play in the order of event time; within a session strictly increasing."""
    cues = [cue for conversation in conversations for cue in _cues(conversation)]
    return sorted(cues, key=lambda cue: (cue.at, cue.conversation.session_id))


def _cues(conversation: DemoConversation) -> list[Cue]:
    def cue(act: CueAct, turn: int) -> Cue:
        return Cue(begins + at / conversation.hurried, conversation, act, turn)

    begins, at = timedelta(minutes=conversation.starts_minute), timedelta(0)
    cues = []
    for number, turn in enumerate(conversation.turns):
        ((role, content),) = turn.items()
        sitting = conversation.sitting_at(number)
        if sitting and sitting.first_turn == number:
            at += timedelta(hours=sitting.after_hours)
        at += _THINKING[role] + timedelta(seconds=round(len(content) / _CHARS_PER_S[role], 3))
        cues.append(cue(CueAct.TURN, number))
        if number == conversation.acknowledged_after_turn:
            at += _AFTERWARDS
            cues.append(cue(CueAct.ACKNOWLEDGE, number))
    if conversation.ends:
        at += _AFTERWARDS
        cues.append(cue(CueAct.END, len(conversation.turns) - 1))
    return cues
