"""The gateway: turns of clients checked, given a time and an id, and appended to `turns.v1`.

Their numbers are given by the fold, in the order of the log; it knows a message's id again. So a request may be sent
again to any process of the gateway, and changes nothing.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from uuid import uuid4

from msgspec import Struct, structs

from models.errors import InvalidRecord
from models.events import DEFAULT_APP, InputEvent, SessionEnded
from models.events.topics import TURNS
from models.messages.turns import IncomingTurn
from models.policy import Policy
from models.wire.codec import decode_input
from streams.gateway.turns_log import Place, TurnsLog
from streams.http.problems import FieldError, invalid_request
from streams.http.security import caller
from streams.kafka.producer import ProducerOnDemand, Record
from streams.kafka.records import input_record
from streams.observe.telemetry import metrics
from streams.settings import Settings

_FIELD_OF = {"content_too_large": "content", "future_timestamp": "timestamp", "ancient_timestamp": "timestamp"}


class AcceptedTurn(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A turn that is stored in the log.

    Attributes:
        session_id: Id of the session.
        app_id: Id of the app.
        message_id: Id from the sender, or a generated one.
        partition: Partition of `turns.v1`.
        offset: Offset in the partition.
        turn: Turn number, if the request waited for it.
    """

    session_id: str
    app_id: str
    message_id: str
    partition: int
    offset: int
    turn: int | None = None


class Gateway:
    """Takes turns; everything that comes in over HTTP goes this way.

    Args:
        settings: The cluster, the topics' prefix, and how much may be under way.
        policy: What a turn must keep to.
        now: The clock.
    """

    def __init__(
        self, settings: Settings, policy: Policy, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._intake = policy.intake
        self._now = now
        topic = TURNS.full_name(settings.topic_prefix)
        max_bytes = settings.gateway.max_bytes_in_flight
        self._log = TurnsLog(ProducerOnDemand(settings), topic, max_bytes=max_bytes)

    async def accept(
        self, turns: Sequence[IncomingTurn], name: Callable[[int], str] = "turns[{}]".format
    ) -> list[AcceptedTurn]:
        """Append turns, of the caller's apps; on return all replicas have them.

        Args:
            turns: In the order of their conversations.
            name: Of a turn in the request, by its place, for what is refused.

        Raises:
            Problem: 403, another tenant's app; 422, a turn that the fold would refuse; 429, too much is under way.
                Nothing was sent then.
            DeliveryFailed: The log did not confirm it. It may be there all the same; with its message ids it may be
                sent again.
        """
        said, now, errors = [self.completed(turn) for turn in turns], self._now(), list[FieldError]()
        records = list[Record]()
        for place, turn in enumerate(said):
            try:
                records.append(self.record_of(turn, now))
            except InvalidRecord as error:
                field = f"{name(place)}.{_FIELD_OF.get(error.reason, '')}".strip(".")
                errors.append(FieldError(field, error.detail))
        if errors:
            raise invalid_request(errors)
        places = await self.append(records)
        return [
            AcceptedTurn(
                session_id=turn.session_id,
                app_id=turn.app_id or DEFAULT_APP,
                message_id=turn.message_id or "",
                partition=place.partition,
                offset=place.offset,
            )
            for turn, place in zip(said, places, strict=True)
        ]

    async def append(self, records: Sequence[Record]) -> list[Place]:
        """Append turns as `record_of` makes them; on return all replicas have them.

        Raises:
            Problem: 429, too much is under way; nothing was sent.
            DeliveryFailed: As of `accept`.
        """
        places = await self._log.append(records)
        metrics.counter("gateway_turns_total").inc(len(places))
        return places

    async def end(self, session_id: str, app_id: str | None, reason: str) -> Place:
        """End a session of the caller's; on return all replicas have it.

        Raises:
            Problem: 403, another tenant's app; 429, too much is under way.
            DeliveryFailed: The log did not confirm it.
        """
        app = caller().app_of(app_id) if caller().apps is None else caller().app_meant(app_id)
        ended = SessionEnded(session_id=session_id, app_id=app or "", timestamp=self._now(), reason=reason)
        return (await self._log.append([input_record(ended)]))[0]

    def completed(self, turn: IncomingTurn) -> IncomingTurn:
        """A turn with its app and an id.

        Raises:
            Problem: 403, another tenant's app.
        """
        return structs.replace(turn, app_id=caller().app_meant(turn.app_id), message_id=turn.message_id or str(uuid4()))

    def record_of(self, turn: IncomingTurn, now: datetime) -> Record:
        """A turn as `turns.v1` takes it.

        Raises:
            InvalidRecord: The fold would refuse it.
        """
        event: InputEvent = turn.event(now)
        record = input_record(event)
        decode_input(record.value, record.key, now, self._intake)
        return record

    async def look(self) -> None:
        """Connect, if that is still to be done.

        Raises:
            DeliveryFailed: The cluster does not answer, or refused what was written last.
        """
        await self._log.look()

    async def close(self) -> None:
        """Wait for what is under way, then disconnect."""
        await self._log.close()
