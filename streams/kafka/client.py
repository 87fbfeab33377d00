"""Aiokafka clients from settings: addresses, SASL and TLS, and common operations on a cluster.

Faust gets the same options through `streams.kafka.app`; all other access to Kafka uses this module.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeVar

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from models.errors import ConfigurationError, StoreUnavailable
from streams.encryption.records import opened
from streams.settings import KafkaSettings

_Client = TypeVar("_Client")
_POLL_MS = 500
READ_COMMITTED = "read_committed"
"""Isolation level of all readers: they skip records of aborted transactions."""


class Extent(NamedTuple):
    """Offsets of a partition from `start` to `end`, which is exclusive."""

    start: int
    end: int


Extents = Mapping[TopicPartition, Extent]


def ssl_context(kafka: KafkaSettings) -> ssl.SSLContext | None:
    """TLS context of the `SSL` and `SASL_SSL` protocols, None for the others.

    Raises:
        ConfigurationError: A certificate or key file cannot be read.
    """
    if not kafka.security_protocol.endswith("SSL"):
        return None
    try:
        context = ssl.create_default_context(cafile=kafka.ssl_cafile)
        if kafka.ssl_certfile is not None:
            context.load_cert_chain(kafka.ssl_certfile, kafka.ssl_keyfile)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(
            f"kafka.ssl_cafile, ssl_certfile or ssl_keyfile cannot be used: {error}. Each is a PEM file."
        ) from error
    return context


def client_options(kafka: KafkaSettings) -> dict[str, Any]:
    """Connection options that every aiokafka client takes.

    Raises:
        ConfigurationError: TLS files cannot be read, or SASL has no user name.
    """
    options: dict[str, Any] = {
        "bootstrap_servers": kafka.bootstrap,
        "security_protocol": kafka.security_protocol,
    }
    context = ssl_context(kafka)
    if context is not None:
        options["ssl_context"] = context
    if kafka.security_protocol.startswith("SASL"):
        if not kafka.sasl_username:
            raise ConfigurationError(
                f"kafka.security_protocol is {kafka.security_protocol}: set kafka.sasl_username and sasl_password"
            )
        options |= {
            "sasl_mechanism": kafka.sasl_mechanism,
            "sasl_plain_username": kafka.sasl_username,
            "sasl_plain_password": kafka.sasl_password.get_secret_value(),
        }
    return options


def reader_options(kafka: KafkaSettings) -> dict[str, Any]:
    """Options of every aiokafka consumer: no auto-commit, no aborted records.

    Raises:
        ConfigurationError: As `client_options`.
    """
    return {**client_options(kafka), "enable_auto_commit": False, "isolation_level": READ_COMMITTED}


def why_unreachable(kafka: KafkaSettings, error: Exception) -> str:
    """Advice if a client cannot connect: settings by name, never their secret values.

    Only the log of the client library distinguishes a refused password from a broker that is down.
    """
    asked = [f"kafka.security_protocol ({kafka.security_protocol})"]
    if kafka.security_protocol.startswith("SASL"):
        asked += [f"kafka.sasl_mechanism ({kafka.sasl_mechanism})", "kafka.sasl_username", "kafka.sasl_password"]
    if kafka.security_protocol.endswith("SSL"):
        asked += ["kafka.ssl_cafile", "kafka.ssl_certfile"]
    return (
        f"does not answer, or refuses this client ({type(error).__name__}). Check that it runs, and check "
        f"TURNTIDE_KAFKA and the SASL/TLS settings: {', '.join(asked)}."
    )


@asynccontextmanager
async def _running(
    client: _Client, kafka: KafkaSettings, *, stop: Callable[[], Awaitable[object]]
) -> AsyncIterator[_Client]:
    started: Any = client
    try:
        await started.start()
    except (KafkaError, OSError) as error:
        await _stopped(stop)
        raise StoreUnavailable(
            f"Kafka at {kafka.bootstrap} {why_unreachable(kafka, error)} `turntide kafka start` runs a local broker."
        ) from error
    try:
        yield client
    finally:
        await _stopped(stop)


async def _stopped(stop: Callable[[], Awaitable[object]]) -> None:
    """Stop a client. If its broker is down, aiokafka cancels its own tasks and raises that, which is not for us."""
    try:
        await stop()
    except asyncio.CancelledError:
        if is_cancelled():
            raise


def is_cancelled() -> bool:
    """Whether the running task itself was cancelled, and not a task inside a client that it waits for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


@asynccontextmanager
async def admin(kafka: KafkaSettings) -> AsyncIterator[AIOKafkaAdminClient]:
    """An admin client, started and stopped.

    Raises:
        StoreUnavailable: The cluster does not answer or refuses the credentials.
    """
    client = AIOKafkaAdminClient(**client_options(kafka))
    async with _running(client, kafka, stop=client.close):
        yield client


class OpeningConsumer(AIOKafkaConsumer):  # type: ignore[misc]
    """A consumer that decrypts records and omits those whose key was erased."""

    async def getmany(self, *partitions: TopicPartition, **options: Any) -> dict[TopicPartition, list[ConsumerRecord]]:
        """See `AIOKafkaConsumer`."""
        polled = await super().getmany(*partitions, **options)
        return {place: readable for place, records in polled.items() if (readable := opened(records))}


@asynccontextmanager
async def consumer(kafka: KafkaSettings, *topics: str, **options: Any) -> AsyncIterator[AIOKafkaConsumer]:
    """A consumer of committed records without auto-commit, started and stopped.

    Raises:
        StoreUnavailable: The cluster does not answer or refuses the credentials.
    """
    client = OpeningConsumer(*topics, **reader_options(kafka), **options)
    async with _running(client, kafka, stop=client.stop):
        yield client


async def require_topic(kafka: KafkaSettings, topic: str) -> list[int]:
    """Partitions of a topic that must exist.

    It lists all topics: a request for this one would create it on a broker with automatic topic creation.

    Raises:
        ConfigurationError: The topic does not exist.
    """
    async with admin(kafka) as client:
        found = next((each for each in await client.describe_topics() if each["topic"] == topic), None)
        if found is None or found["error_code"]:
            raise ConfigurationError(
                f"topic {topic} does not exist at {kafka.bootstrap}: run `turntide topics apply`, "
                "or check TURNTIDE_TOPIC_PREFIX and the ACLs of this Kafka user"
            )
        return sorted(partition["partition"] for partition in found["partitions"])


async def read_to_end(
    kafka: KafkaSettings,
    topic: str,
    *,
    only: int | None = None,
    first: int | Mapping[int, int] = 0,
    before: int | Mapping[int, int] | None = None,
) -> AsyncGenerator[ConsumerRecord, None]:
    """All records from the log's start to its end at the time of the call, partition by partition in order.

    Without a group; commits nothing.

    Args:
        kafka: The cluster.
        topic: Full name.
        only: Only this partition.
        first: Only records from this offset on, or from one for each partition (0 if missing).
        before: Only records below this offset, or below one for each partition (0 if missing).

    Raises:
        ConfigurationError: The topic does not exist.
    """
    partitions = [TopicPartition(topic, p) for p in await require_topic(kafka, topic) if only in (None, p)]
    async with consumer(kafka) as client:
        ends, starts = await client.end_offsets(partitions), await client.beginning_offsets(partitions)
        last = {p: end if before is None else min(end, _bound(before, p)) for p, end in ends.items()}
        extents = {p: Extent(max(starts[p], _bound(first, p)), last[p]) for p in partitions}
        async for record in read_extents(client, extents):
            yield record


def _bound(offset: int | Mapping[int, int], place: TopicPartition) -> int:
    return offset if isinstance(offset, int) else offset.get(place.partition, 0)


async def read_extents(
    client: AIOKafkaConsumer, extents: Extents, *, most_records: int | None = None
) -> AsyncGenerator[ConsumerRecord, None]:
    """All existing records of the extents, each partition in order.

    The consumer has no group. Close a generator before the next one starts.
    """
    waiting = [place for place, extent in extents.items() if extent.start < extent.end]
    if not waiting:
        return
    client.assign(waiting)
    for place in waiting:
        client.seek(place, extents[place].start)
    while waiting:
        polled = await client.getmany(*waiting, timeout_ms=_POLL_MS, max_records=most_records)
        for place, records in polled.items():
            for record in records:
                if record.offset < extents[place].end:
                    yield record
        # By position, not by the last record: compaction may have removed the records at the end.
        waiting = [place for place in waiting if await client.position(place) < extents[place].end]
