"""A Faust app with the settings that the hazards taught, on the micro-batch transport."""

import asyncio

import faust
from faust.app.router import Router
from faust.tables.manager import TableManager
from yarl import URL

from streams.kafka.client import ssl_context
from streams.kafka.transport import BatchTransport, Recover
from streams.settings import KafkaSettings, Settings

STREAM_BUFFER_BATCHES = 1024
"""Never reached: the consumer polls again only when a poll's batches are taken. Faust stalls for a second when full."""

METADATA_MAX_AGE_MS = 15_000
"""Partitions that are added to a live topic are noticed within it."""


class ShownTables(TableManager):  # type: ignore[misc]
    """Faust's table manager over tables that recover and write by themselves: it lists them, and no more."""

    def __bool__(self) -> bool:
        """Whether there is a table for Faust to recover: never."""
        return False

    async def on_start(self) -> None:
        """As its base class, but it need not wait a second for tables: every restart of a worker would pay for it."""
        await self._update_channels()
        await self.recovery.start()

    async def _update_channels(self) -> None:
        self._tables_finalized.set()
        await asyncio.sleep(0)
        self._tables_registered.set()


class OwnKeys(Router):  # type: ignore[misc]
    """Faust's router, for tables whose changelogs it does not assign: a worker answers for what it holds itself."""

    def key_store(self, table_name: str, key: str) -> URL:  # noqa: ARG002 - Faust's signature
        """This worker."""
        own: URL = self.app.conf.canonical_url
        return own


def create_app(settings: Settings, *, role: str, topics: frozenset[str], recover: Recover) -> faust.App:
    """One role's app with topics that arrive in batches: its own consumer group; Faust recovers no table."""
    kafka = settings.kafka
    datadir = settings.data_dir / "faust" / role
    datadir.mkdir(parents=True, exist_ok=True)
    addresses = [URL(f"kafka://{server.strip()}") for server in kafka.bootstrap.split(",")]
    app = faust.App(
        f"{settings.topic_prefix}.{role}",
        broker=addresses,
        broker_credentials=credentials(kafka),
        broker_session_timeout=kafka.session_timeout.total_seconds(),
        broker_heartbeat_interval=kafka.heartbeat_interval.total_seconds(),
        broker_commit_interval=0.5,
        broker_max_poll_records=kafka.max_poll_records,
        consumer_auto_offset_reset="earliest",
        consumer_group_instance_id=f"{settings.worker_id}.{role}" if settings.worker_id else None,
        consumer_max_fetch_size=kafka.max_fetch_bytes,
        consumer_metadata_max_age_ms=METADATA_MAX_AGE_MS,
        stream_buffer_maxsize=STREAM_BUFFER_BATCHES,
        stream_wait_empty=True,
        store="memory://",
        TableManager=ShownTables,
        Router=OwnKeys,
        datadir=datadir,
        topic_allow_declare=False,
        topic_disable_leader=True,
        table_standby_replicas=0,
        web_enabled=False,
        web_bind="127.0.0.1",
        loghandlers=[],
    )
    app.transport = BatchTransport(addresses, app, batched=topics, recover=recover)
    return app


def credentials(kafka: KafkaSettings) -> faust.SASLCredentials | faust.SSLCredentials | None:
    """The settings' SASL and TLS options, as Faust takes them; None for plain text."""
    context = ssl_context(kafka)
    if kafka.security_protocol.startswith("SASL"):
        return faust.SASLCredentials(
            username=kafka.sasl_username,
            password=kafka.sasl_password.get_secret_value(),
            mechanism=kafka.sasl_mechanism,
            ssl_context=context,
        )
    return faust.SSLCredentials(context) if context is not None else None
