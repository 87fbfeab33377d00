"""Records of erasures in `erasures.v1`: the request, the index's answers, the proof; and requests by clients."""

import asyncio
from collections.abc import AsyncGenerator, Iterator

from aiokafka import ConsumerRecord, TopicPartition
from msgspec import Struct, structs

from models import events
from models.events.topics import ERASURES, PROFILES
from models.policy import IntakePolicy
from models.wire.codec import encode
from models.wire.envelope import headers_for, tag_of
from streams.erase.concerned import checked
from streams.erase.logs import Logs, opened
from streams.kafka.producer import Record
from streams.settings import Settings

PLACE = 0
"""Partition of all requests; the archive worker that owns it carries them out, one after the other."""


def key_of(request_id: str, kind: type[events.ErasureEvent]) -> bytes:
    """Key of a record of an erasure.

    >>> key_of("r-1", events.EraseRequested)
    b'r-1/erase_requested'
    """
    return f"{request_id}/{tag_of(kind)}".encode()


def recorded(event: events.ErasureEvent) -> Record:
    """The record of an erasure's event."""
    return Record(key_of(event.request_id, type(event)), encode(event), headers_for(event))


class ErasureRecords:
    """All erasures in the log, updated by `refresh`.

    Attributes:
        requested: Requests whose record still exists, in log order.
        due: The last request to the index for each, with its known sessions.
        vectors: The index's answers to a request, combined: the last counts for the rest, removed points are summed.
        answered_at: Offset of the last answer.
        proved: Proofs.
    """

    def __init__(self) -> None:
        self.requested: dict[str, events.EraseRequested] = {}
        self.due: dict[str, events.VectorsErasureDue] = {}
        self.vectors: dict[str, events.VectorsErased] = {}
        self.answered_at: dict[str, int] = {}
        self.proved: dict[str, events.ErasureProved] = {}
        self._next: dict[TopicPartition, int] = {}

    async def refresh(self, logs: Logs) -> None:
        """Read the records since the last call."""
        extents = await logs.extents(ERASURES, start=self._next)
        async for record in logs.read(extents):
            self.take(logs, record)
        self._next = {place: extent.end for place, extent in extents.items()}

    def take(self, logs: Logs, record: ConsumerRecord) -> None:
        """Apply a record."""
        event = logs.event_of(ERASURES, record)
        if event is None:
            self._forget((record.key or b"").decode(errors="replace"))
        else:
            self.take_event(event, offset=record.offset)

    def take_event(self, event: Struct, *, offset: int) -> None:
        """Apply the event of a record."""
        match event:
            case events.EraseRequested():
                self.requested.setdefault(event.request_id, event)
            case events.VectorsErasureDue():
                self.due[event.request_id] = event
            case events.VectorsErased():
                self.vectors[event.request_id] = _joined(self.vectors.get(event.request_id), event)
                self.answered_at[event.request_id] = offset
            case events.ErasureProved():
                self.proved.setdefault(event.request_id, event)
            case _:
                pass

    def _forget(self, key: str) -> None:
        request_id, _, kind = key.rpartition("/")
        if kind == tag_of(events.EraseRequested):
            self.requested.pop(request_id, None)
        if kind == tag_of(events.VectorsErasureDue):
            self.due.pop(request_id, None)

    @property
    def pending(self) -> list[events.EraseRequested]:
        """Requests without a proof."""
        return [request for request in self.requested.values() if request.request_id not in self.proved]

    @property
    def index_was_here(self) -> bool:
        """Whether an index has ever reported collections, for any erasure."""
        answers: tuple[events.VectorsErased | events.ErasureProved, ...] = (
            *self.vectors.values(),
            *self.proved.values(),
        )
        return any(store.store.startswith("vectors ") for answer in answers for store in answer.stores)

    def names(self) -> Iterator[bytes]:
        """Keys of records with names whose erasure is proved: these records must be removed."""
        for request_id in self.proved:
            if request_id in self.requested:
                yield key_of(request_id, events.EraseRequested)
            if request_id in self.due:
                yield key_of(request_id, events.VectorsErasureDue)


def _joined(before: events.VectorsErased | None, answer: events.VectorsErased) -> events.VectorsErased:
    removed = {store.store: store.removed for store in before.stores} if before is not None else {}
    stores = [structs.replace(each, removed=each.removed + removed.get(each.store, 0)) for each in answer.stores]
    return structs.replace(answer, stores=stores)


class KafkaEraseRequests:
    """Requests erasures for the HTTP API and the command line. Each call opens its own clients, since calls are rare.

    All methods raise `ConfigurationError` if the topic is missing, `StoreUnavailable` if Kafka does not answer, and
    `DeliveryFailed` if the log did not confirm the record.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def request(self, wanted: events.EraseRequested) -> None:
        """Request an erasure; on return the log has it. `ConfigurationError` also if its subject is not exactly one."""
        event = checked(wanted)
        async with opened(self._settings, IntakePolicy()) as logs:
            await logs.ends(ERASURES)  # a topic that is missing is said so, rather than waited for
            await logs.write({TopicPartition(logs.name(ERASURES), PLACE): [recorded(event)]})

    async def apps_of(self, session_id: str) -> set[str]:
        """Apps with a session of this id that is not erased, by the keys of `profiles.v1`; reads the whole topic."""
        async with opened(self._settings, IntakePolicy()) as logs:
            found: dict[bytes | None, str] = {}
            async for record in logs.read(await logs.extents(PROFILES)):
                key = (record.key or b"").decode(errors="replace")
                if session_id in (key, events.SessionName.of_key(key).session_id):
                    event = logs.event_of(PROFILES, record)
                    found[record.key] = event.app_id if isinstance(event, events.ProfileUpdated) else ""
        return set(filter(None, found.values()))

    async def proof(self, request_id: str) -> events.ErasureProved | None:
        """The proof of an erasure; None while it is in progress, and for an unknown id."""
        records = ErasureRecords()
        async with opened(self._settings, IntakePolicy()) as logs:
            await records.refresh(logs)
        return records.proved.get(request_id)

    async def watched(self, every_s: float) -> AsyncGenerator[ErasureRecords, None]:
        """All erasures, now and after each interval."""
        records = ErasureRecords()
        async with opened(self._settings, IntakePolicy()) as logs:
            while True:
                await records.refresh(logs)
                yield records
                await asyncio.sleep(every_s)
