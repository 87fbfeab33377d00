"""Routes of the gateway: turns, as they are or as OpenAI's chat messages, and ends of sessions."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct
from starlette.requests import Request

from models.errors import DeliveryFailed
from models.events.base import Role, Scalar
from models.events.fields import Identifier, MessageId, Ratio, TurnNumber, UtcTime
from models.messages.openai import ChatMessage, turns_of
from models.messages.turns import IncomingTurn
from streams.gateway.gateway import AcceptedTurn, Gateway
from streams.gateway.visible import IndexedNumbers
from streams.http.field_rules import Rules, given, some_of
from streams.http.problems import Problem, invalid_field
from streams.http.route import Accepted, Group, RouteAnswer
from streams.settings.http import TokenRole

_TURNS = Group("turns", "Turns of conversations to store.", prefix="/v1", role=TokenRole.WRITER)
_MOST = 1_000
_FORMS = (
    "send one turn (session_id, user_id, role, content), `turns`, or session_id and user_id with OpenAI's `messages`"
)


class PostedTurns(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One turn, several turns, or messages of a session in OpenAI's format."""

    rules: ClassVar[Rules] = some_of(
        given("turns"), given("session_id", "user_id", "messages"), given("session_id", "user_id", "role", "content")
    )

    session_id: Identifier | None = None
    user_id: Identifier | None = None
    app_id: Annotated[Identifier, Meta(description="Default: the token's only app, else `default`.")] | None = None
    role: Role | None = None
    content: str | None = None
    message_id: Annotated[MessageId, Meta(description="Unique in the session; a repeat is ignored.")] | None = None
    timestamp: UtcTime | None = None
    turn: Annotated[TurnNumber, Meta(description="Default: the next number.")] | None = None
    project_id: Identifier | None = None
    risk: Ratio | None = None
    metadata: dict[str, Scalar] | None = None
    type: Literal["turn"] = "turn"
    turns: Annotated[list[IncomingTurn], Meta(min_length=1, max_length=_MOST)] | None = None
    messages: Annotated[list[ChatMessage], Meta(min_length=1, max_length=_MOST)] | None = None
    wait: Annotated[
        Literal["accepted", "visible"],
        Meta(description="`accepted`: wait for Kafka; `visible`: wait for readers, and return the turn numbers."),
    ] = "accepted"


class TurnsAccepted(Struct, frozen=True, kw_only=True):
    """Accepted turns, in the order of the request."""

    accepted: list[AcceptedTurn]


class EndSession(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Request to end a session."""

    app_id: (
        Annotated[
            Identifier, Meta(description="Default: the token's only app, else the only app that has such a session.")
        ]
        | None
    ) = None
    reason: Annotated[str, Meta(max_length=256)] = "ended"


class EndedSession(Struct, frozen=True, kw_only=True):
    """Position of the end event in the log."""

    session_id: str
    partition: int
    offset: int


class GatewayRoutes:
    """Routes over one gateway.

    Args:
        gateway: Takes what comes.
        numbers: Says which numbers turns were given, once readers see them.
    """

    def __init__(self, gateway: Gateway, numbers: IndexedNumbers) -> None:
        self._gateway = gateway
        self._numbers = numbers

    @_TURNS.post("/turns", "add_turns", audits="acted")
    async def add(self, body: PostedTurns, request: Request) -> Accepted[TurnsAccepted] | RouteAnswer[TurnsAccepted]:
        """Append turns to their sessions. Returns 202 once Kafka has them on all replicas, in their final order.

        A message without `message_id` gets one. Turns with known ids are ignored, so a request without response may be
        repeated with the same ids. If one turn is invalid, the whole request is rejected.

        Raises:
            Problem: 422 a wrong turn; 429 Kafka is behind; 504 readers do not see them yet.
        """
        turns, names = said_in(body)
        try:
            accepted = await self._gateway.accept(turns, names.__getitem__)
        except DeliveryFailed as error:
            detail = f"{error} The turns may have been written: send them again only with your own message_ids."
            raise Problem(
                HTTPStatus.SERVICE_UNAVAILABLE, "log_unavailable", detail, headers={"Retry-After": "2"}
            ) from error
        if body.wait == "accepted":
            return Accepted(TurnsAccepted(accepted=accepted))
        numbers = await self._numbers.of(accepted, request.headers.get("authorization"))
        return RouteAnswer(TurnsAccepted(accepted=numbers))

    @_TURNS.post("/sessions/{session_id:path}/end", "end_session", audits="acted")
    async def end(
        self, body: EndSession, *, session_id: Annotated[Identifier, Meta(description="URL-encoded; any character.")]
    ) -> Accepted[EndedSession]:
        """End a session: close its memory and release its state. A later turn continues it."""
        place = await self._gateway.end(session_id, body.app_id, body.reason)
        return Accepted(EndedSession(session_id=session_id, partition=place.partition, offset=place.offset))


_OF_ONE = tuple(name for name in IncomingTurn.__struct_fields__ if name != "type")
_OF_MESSAGES = ("session_id", "user_id", "app_id", "project_id")


def said_in(body: PostedTurns) -> tuple[list[IncomingTurn], Sequence[str]]:
    """The turns of a request, and the name of each in it.

    Raises:
        Problem: 422, it has none of the forms, or more than one.
    """
    fields: dict[str, Any] = {name: value for name in _OF_ONE if (value := getattr(body, name)) is not None}
    if body.turns is not None:
        _require_only(fields, body.messages, ())
        return body.turns, [f"turns[{n}]" for n in range(len(body.turns))]
    if body.messages is not None:
        _require_only(fields, None, _OF_MESSAGES)
        _require(fields, "session_id", "user_id")
        each = [turns_of([message], **fields) for message in body.messages]
        turns = [turn for made in each for turn in made]
        if not turns:
            raise invalid_field("messages", "have neither text nor tool calls")
        return turns, [f"messages[{n}]" for n, made in enumerate(each) for _ in made]
    _require(fields, "session_id", "user_id", "role", "content")
    return [IncomingTurn(**fields)], [""]


def _require(fields: dict[str, Any], *names: str) -> None:
    for name in names:
        if name not in fields:
            raise invalid_field(name, f"is missing: {_FORMS}")


def _require_only(fields: dict[str, Any], other: object, allowed: Sequence[str]) -> None:
    if wrong := [name for name in fields if name not in allowed] or (["messages"] if other is not None else []):
        raise invalid_field(wrong[0], f"cannot be combined with the other fields: {_FORMS}")
