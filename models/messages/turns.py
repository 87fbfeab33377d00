"""A turn as clients send it: what they leave out is filled in on the way to `turns.v1`."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from msgspec import Struct, structs

from models.events import DEFAULT_APP, AnyTurn, Turn, UnnumberedTurn
from models.events.base import Role, Scalar
from models.events.fields import Identifier, MessageId, Ratio, TurnNumber, UtcTime, about


class IncomingTurn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """One message of a conversation, with optional metadata of its sender."""

    session_id: Annotated[Identifier, about("Id of the session (conversation).")]
    user_id: Annotated[Identifier, about("Id of the user in the conversation.")]
    app_id: (
        Annotated[Identifier, about("Id of the app. Optional; default: the token's only app, else `default`.")] | None
    ) = None
    role: Annotated[Role, about("Role of the speaker.")]
    content: Annotated[str, about("Text of the message, at most 256 KiB of UTF-8; may be empty.")]
    message_id: (
        Annotated[MessageId, about("Your id, unique in the session; a repeat is ignored. Default: a new id.")] | None
    ) = None
    timestamp: Annotated[UtcTime, about("Event time, RFC 3339 with a UTC offset. Default: now.")] | None = None
    turn: Annotated[TurnNumber, about("Position in the session. Default: numbered in order of arrival.")] | None = None
    project_id: Annotated[Identifier, about("Id of the project, if any.")] | None = None
    risk: Annotated[Ratio, about("Risk from an upstream model, 0-1. Default: scored here.")] | None = None
    metadata: Annotated[dict[str, Scalar], about("Scalar values, copied to the archive.")] | None = None
    type: Literal["turn"] = "turn"

    def event(self, now: datetime) -> AnyTurn:
        """The turn as `turns.v1` takes it: said now and in the default app, where it does not say otherwise."""
        time = now if self.timestamp is None else self.timestamp.astimezone(UTC)
        given = structs.asdict(self) | {"timestamp": time, "app_id": self.app_id or DEFAULT_APP}
        turn = given.pop("turn")
        return UnnumberedTurn(**given) if turn is None else Turn(turn=turn, **given)
