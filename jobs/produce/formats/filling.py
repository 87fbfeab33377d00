"""Common rules of every format: turns made of what was said, and gaps filled.

The rules, the same for every conversation format:

* **session id** missing: `<file name without suffix>-<position in the file>`; the same file gives the same ids.
* **user id** missing: `--user-id`, else `user-<session id>`; **app id** missing: `--app-id`.
* **turn number** missing: position in the session, from 0.
* **time** without a zone: of `--time-zone`, else UTC; missing: five seconds after the turn before; a session without
  any begins at `--start`, and without that ends at the moment of the call, so that no turn lies in the future.
* **role** names of other tools are mapped (`human` and `prompter` are users, `gpt` and `model` assistants, …).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

from msgspec import Struct

from models.errors import InvalidRecord
from models.events import MAX_CONTENT_BYTES, Identifier, Ratio, Role, Scalar, Turn, TurnNumber
from models.events.fields import MessageId
from models.events.ids import named_id

TURN_INTERVAL = timedelta(seconds=5)
_MAX_ID_CHARACTERS = 256

_ROLES = {
    **dict.fromkeys(("user", "human", "prompter"), Role.USER),
    **dict.fromkeys(("assistant", "gpt", "chatgpt", "bot", "model", "function_call"), Role.ASSISTANT),
    **dict.fromkeys(("system", "developer"), Role.SYSTEM),
    **dict.fromkeys(("tool", "function", "observation", "tool_response"), Role.TOOL),
}


class Malformed(Struct, frozen=True):
    """Line, or element of an array, that gives no turns; the others are read all the same.

    Attributes:
        line: Line number, or place in the array, from 1.
        reason: What is wrong, without any of its text.
    """

    line: int
    reason: str


class FileMessage(Struct, frozen=True, kw_only=True):
    """One message as a file has it; None is filled in."""

    role: str
    content: str
    timestamp: datetime | None = None
    turn: TurnNumber | None = None
    risk: Ratio | None = None
    metadata: dict[str, Scalar] | None = None
    user_id: Identifier | None = None
    message_id: MessageId | None = None


class Transcript(NamedTuple):
    """What was said in one session, told together after a whole input was read."""

    session_id: str
    said: Sequence[FileMessage]
    user_id: str | None = None
    app_id: str | None = None


class Filling(Struct, frozen=True, kw_only=True):
    """Values for what a file does not give.

    Attributes:
        source: Name of the input, without suffix.
        now: The moment of the call.
        start: When sessions without times begin; None: such a session ends at `now`.
        app_id: For turns that name none.
        user_id: For turns that name none; None: derived from the session id.
        keep_metadata: Whether further scalars beside a conversation become its turns' metadata.
        folder: Name of the folder that the input is in; empty: none.
        assistants: Speakers of chats of several who are the assistant.
        zone: Of times that name none.
    """

    source: str
    now: datetime
    start: datetime | None = None
    app_id: Identifier = "default"
    user_id: Identifier | None = None
    keep_metadata: bool = False
    folder: str = ""
    assistants: frozenset[str] = frozenset()
    zone: tzinfo = UTC

    def session_id(self, position: int) -> str:
        """Id of the conversation at this place of the input.

        >>> Filling(source="chats", now=datetime.now(UTC)).session_id(3)
        'chats-3'
        """
        return _short(f"{self.source}-{position}")

    def user_of(self, session_id: str) -> str:
        """User of a session that names none."""
        return self.user_id or _short(f"user-{session_id}")

    def turns(
        self, session_id: str, said: Sequence[FileMessage], *, user_id: str | None = None, app_id: str | None = None
    ) -> list[Turn]:
        """Make turns of a conversation.

        Raises:
            InvalidRecord: A role is unknown, or a message too long.
        """
        user = user_id or self.user_of(session_id)
        app = app_id or self.app_id
        return [
            Turn(
                session_id=_short(session_id),
                user_id=_short(message.user_id or user),
                app_id=app,
                turn=position if message.turn is None else message.turn,
                role=_role(message.role, position),
                content=check_content(message.content, position),
                timestamp=time,
                risk=message.risk,
                metadata=message.metadata,
                message_id=message.message_id,
            )
            for position, (message, time) in enumerate(zip(said, self._times(said), strict=True))
        ]

    def _times(self, said: Sequence[FileMessage]) -> list[datetime]:
        times: list[datetime] = []
        time = self._begin(said)
        for message in said:
            if message.timestamp is not None:
                time = in_utc(message.timestamp, self.zone)
            times.append(time)
            time += TURN_INTERVAL
        return times

    def _begin(self, said: Sequence[FileMessage]) -> datetime:
        """Time of the first message, counted back from the first that has one."""
        for position, message in enumerate(said):
            if message.timestamp is not None:
                return in_utc(message.timestamp, self.zone) - position * TURN_INTERVAL
        return self.start or self.now - max(0, len(said) - 1) * TURN_INTERVAL


def in_utc(time: datetime, zone: tzinfo = UTC) -> datetime:
    """An aware time in UTC; one without a zone is of this one."""
    return (time.replace(tzinfo=zone) if time.tzinfo is None else time).astimezone(UTC)


def reason_of(error: Exception) -> str:
    """Message of a decoder's error without the values that it quotes."""
    message = error.detail if isinstance(error, InvalidRecord) else str(error)
    return re.sub(r"'.*'", "…", message)


def _short(name: str) -> str:
    return name if len(name) <= _MAX_ID_CHARACTERS and name.isprintable() else named_id(name)


def _role(name: str, position: int) -> Role:
    role = _ROLES.get(name.lower())
    if role is None:
        raise InvalidRecord("unknown_role", f"message {position} has a role other than {', '.join(sorted(_ROLES))}")
    return role


def check_content(content: str, position: int) -> str:
    """Give the content back if it is short enough.

    Raises:
        InvalidRecord: It is not.
    """
    # A character is at most four bytes: short text needs no encoding to know that it fits.
    if len(content) * 4 > MAX_CONTENT_BYTES and (size := len(content.encode())) > MAX_CONTENT_BYTES:
        raise InvalidRecord("content_too_large", f"message {position} has {size} bytes, allowed {MAX_CONTENT_BYTES}")
    return content
