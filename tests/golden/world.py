"""The product in one process, without a broker: logs are folded, answered, landed, indexed and served as roles do it.

All names of the product that the golden test needs stand here and in `contracts`; events are told apart by their tags.
"""

from __future__ import annotations

import inspect
import sys
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import msgspec
from aiokafka.partitioner import murmur2
from aiokafka.structs import ConsumerRecord
from fastapi import FastAPI
from faust.types import TP
from prometheus_client import CollectorRegistry

from models.entities import entity_key
from models.events.base import Position
from models.events.topics import ARCHIVED_TOPICS, COMMANDS, INDEXED_TOPICS, REQUESTS, TOPIC_OF, TOPICS, TURNS
from models.wire.codec import decode_output, encode
from models.wire.envelope import headers_for, key_of
from streams.api.live.feed import TOPICS as LIVE_TOPICS
from streams.api.live.feed import take as take_live
from streams.api.live.service import LivePage
from streams.archive.buffer import Buffer
from streams.archive.landed import land_all
from streams.archive.place import LakePaths
from streams.archive.progress import Move, Place
from streams.archive.schema import RAW
from streams.archive.views.published import ABOUT
from streams.archive.writer import LakeWriter
from streams.erase.record import recorded
from streams.http.audit_log import BatchedAudit
from streams.http.health import create_api
from streams.http.security import access_of
from streams.inference.episode_embeddings import episode_vectors
from streams.inference.llm_memories import MemoryWriter
from streams.inference.memory_requests import answerers
from streams.kafka.producer import Record
from streams.observe.telemetry import configure_logging
from streams.oracle.replay import LogReplay, Replay, UsersReplay
from streams.ports import Embedder, VectorStore
from streams.roles.index import IndexRole
from streams.settings import Settings, load_settings
from streams.wiring import policy_of, scorer_of, stream_embedder_of, summariser_of, vector_store_of

__all__ = ["COMMANDS", "TURNS", "Lines", "Served", "World", "encode", "folded", "frozen", "quiet"]

PARTITIONS = 2
_ROUND, _POLL = 50, 1_000
"""Records of a partition between two looks at what was asked and forwarded."""
_PROJECTS = frozenset({"models", "streams", "jobs"})
Lines = dict[str, list[str]]
"""Section → its lines."""


@cache
def _embedder() -> Embedder:
    """Loading its weights takes a while."""
    return stream_embedder_of(load_settings())


class _Noted(LogReplay[Any]):
    """A replay that says what it writes."""

    lines: Lines
    publish: Callable[[int, Sequence[Any]], None]
    _at = 0
    _writes = 0

    def fold(self, partition: int, records: Sequence[ConsumerRecord]) -> None:
        self._at = partition
        super().fold(partition, records)

    def _keep(self, events: Sequence[Any]) -> None:
        super()._keep(events)
        self.publish(self._at, events)

    def _new_fold(self, entities: Any) -> Callable[[Sequence[Any]], Iterator[Any]]:
        fold = super()._new_fold(entities)

        def noted(arrivals: Sequence[Any]) -> Iterator[Any]:
            for result in fold(arrivals):
                self._write_down(result.changed)
                yield result

        return noted

    def _write_down(self, changed: Mapping[str, Mapping[str, bytes | None]]) -> None:
        """What one write says, sorted; and, apart, in which order it says it."""
        self._writes += 1
        name, at = self.folded.changelog.name, f"{self._at} {self._writes:04}"
        parts = {f"{entity}|{part}": value for entity, of in changed.items() for part, value in of.items()}
        self.lines[f"state/{name}"] += [f"{at} {key} {_part(value)}" for key, value in sorted(parts.items())]
        self.lines[f"state/{name} order"].append(f"{at} {' '.join(parts)}")


class _Sessions(_Noted, Replay):
    """Sessions, from `turns.v1`."""


class _Memory(_Noted, UsersReplay):
    """Users, apps and projects, from `commands.v1`."""


def _part(value: bytes | None) -> str:
    """Size and digest of a part's bytes, and what they say."""
    if value is None:
        return "-"
    try:
        shown = msgspec.json.encode(msgspec.msgpack.decode(value)).decode()
    except (msgspec.MsgspecError, TypeError, UnicodeDecodeError):
        shown = "packed"
    return f"{len(value)} {sha256(value).hexdigest()[:16]} {shown}"


class _Index(IndexRole):
    """The role without a broker."""

    told: Callable[[Any], None]

    async def fence(self) -> None:
        """Nobody else is there."""

    async def _tell(self, answers: Any) -> None:
        self.told(answers)


class World:
    """Logs, and the roles over them.

    Args:
        folder: Where archive and index are put.
        now: See below.
        prefix: Of the topics.
        forwards: Whether what sessions forward is folded on; else it is only told.
        settings: Of all roles.

    Attributes:
        now: What the broker stamps records with.
        lines: What was written, by section.
        accessed: What was read of projects.
        model: Answers requests as a language model might, both as plain JSON; None: as where there is none.
    """

    def __init__(
        self, folder: Path, now: datetime, *, prefix: str = "golden", forwards: bool = True, **settings: Any
    ) -> None:
        self.now = now
        self.folder = folder
        self._prefix = prefix
        self._forwards = forwards
        self.lines: Lines = defaultdict(list)
        self.settings: Settings = load_settings(data_dir=folder, topic_prefix=prefix, **settings)
        self.policy = policy_of(self.settings)
        self.embedder: Embedder = _embedder()
        self._log: dict[str, list[list[ConsumerRecord]]] = {
            topic.name: [[] for _ in range(PARTITIONS)] for topic in TOPICS
        }
        self._read: Counter[tuple[str, str, int]] = Counter()
        sessions = _Sessions(self.policy, self.embedder, scorer_of(self.settings, self.embedder))
        self._folds: tuple[_Noted, ...] = (sessions, _Memory(self.policy))
        for fold in self._folds:
            fold.lines, fold.publish = self.lines, self._publish
        writer = MemoryWriter(None, self.policy.apps, within=self.settings.llm.memory_timeout)
        self._answerers = answerers(summariser_of(self.settings, None), None, writer)
        self.accessed: list[Any] = []
        self.model: Callable[[dict[str, Any]], dict[str, Any] | None] = lambda _: None

    # --- the log

    def records(self, topic: str) -> list[ConsumerRecord]:
        """All of a topic, partition after partition."""
        return [record for records in self._log[topic] for record in records]

    def events(self, topic: str) -> list[dict[str, Any]]:
        """Likewise, read as plain JSON."""
        return [msgspec.json.decode(record.value) for record in self.records(topic)]

    def append(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Any = (), place: int = -1
    ) -> Position:
        """Write a record, without a place where its key belongs."""
        number = place if place >= 0 else (int(murmur2(key or b"")) & 0x7FFFFFFF) % PARTITIONS
        log = self._log[topic][number]
        sizes = len(key or b""), len(value or b"")
        stamp = int(self.now.timestamp() * 1000)
        name = f"{self._prefix}.{topic}"
        log.append(ConsumerRecord(name, number, len(log), stamp, 1, key, value, None, *sizes, tuple(headers)))
        return Position(topic, number, len(log) - 1)

    def say(self, topic: str, key: str, tag: str, **fields: Any) -> Position:
        """Write an event that is named by its tag."""
        event = {"type": tag, **fields}
        event.setdefault("timestamp", self.now)
        return self.append(topic, key.encode(), msgspec.json.encode(event))

    def load(self, topic: str, number: int, records: Iterable[Any]) -> None:
        """Take records as they were once written: key, value, headers and time."""
        for record in records:
            self.now = datetime.fromtimestamp(record.timestamp_ms / 1000, UTC)
            self.append(topic, record.key, record.value, record.headers, number)

    def _new(self, reader: str, topic: str, most: int | None = None) -> dict[int, list[ConsumerRecord]]:
        """What a reader has not seen of a topic, by partition."""
        found = {}
        for number, log in enumerate(self._log[topic]):
            begin = self._read[reader, topic, number]
            if records := log[begin:][:most]:
                self._read[reader, topic, number] += len(records)
                found[number] = records
        return found

    def _publish(self, partition: int, events: Sequence[Any]) -> None:
        for event in events:
            topic, key = TOPIC_OF[type(event)], key_of(event)
            place = -1 if topic is COMMANDS else partition
            if topic is COMMANDS and not self._forwards:
                self.lines[f"topics/{topic.name} forwarded"].append(encode(event).decode())
            else:
                self.append(topic.name, key, encode(event), headers_for(event), place)

    # --- what the roles do

    async def fold(self, *, answer: bool = True) -> None:
        """Fold everything there is, and what comes of it."""
        busy = True
        while busy:
            busy = False
            for fold in self._folds:
                for number, records in self._new("fold", fold.folded.source.name, _ROUND).items():
                    fold.fold(number, records)
                    busy = True
            for record in [each for records in self._new("enrich", REQUESTS.name).values() for each in records]:
                if answer:
                    busy = await self._answer(record) or busy

    async def _answer(self, asked: ConsumerRecord) -> bool:
        """Whether there was something to say."""
        value = asked.value or b""
        if (told := self.model(msgspec.json.decode(value))) is not None:
            self.append(COMMANDS.name, asked.key, msgspec.json.encode(told))
            return True
        request: Any = decode_output(REQUESTS, value)
        reply: Any = await self._answerers[type(request)](request)
        if reply is None:
            return False
        if "embedding" in reply.__struct_fields__:
            (row,) = episode_vectors(self.embedder, [[turn.content for turn in request.turns]]).round(5).tolist()
            reply = msgspec.structs.replace(reply, embedding=row, embedded_by=self.embedder.name)
        self.append(COMMANDS.name, asked.key, encode(reply), headers_for(reply))
        return True

    async def remind(self) -> None:
        """Let work go on that is due by now, of every space and project."""
        for key in sorted({(record.key or b"").decode() for record in self.records(COMMANDS.name)}):
            kind, _, name = key.partition(":")
            app_id, _, other = name.partition("/")
            if kind == "app":
                self.say(COMMANDS.name, key, "work_due", app_id=app_id, user_id=other)
            elif kind == "project":
                self.say(COMMANDS.name, key, "project_work_due", app_id=app_id, project_id=other)
        await self.fold()

    def written(self, *besides: str) -> Lines:
        """What was written since the last time: the changelogs, and every topic but those that were put in."""
        found, self.lines = self.lines, defaultdict(list)
        for fold in self._folds:
            fold.lines = self.lines
        for topic in TOPICS:
            for records in self._new("written", topic.name).values():
                if topic.name not in besides:
                    found[f"topics/{topic.name}"] += map(_record, records)
        return dict(found)

    def archived(self) -> Lines:
        """The archive's tables and views, once everything is landed; when it was landed is not told."""
        buffer = Buffer()
        for topic in ARCHIVED_TOPICS:
            for number, records in enumerate(self._log[topic.name]):
                name = f"{self._prefix}.{topic.name}"
                landing = land_all(topic, name, records, self.policy.intake)
                buffer.take(landing.rows)
                buffer.skip_all(landing.skipped)
                buffer.moves[Place(name, number)] = Move(None, 0, len(records))
        writer = LakeWriter(LakePaths(self.folder / "catalog.sqlite", f"{self.folder}/data/"))
        try:
            writer.land(buffer, now=self.now)
            found = {f"archive/{schema}.{name}": _rows(writer.con, schema, name) for schema, name in _names(writer.con)}
            return {name: lines for name, lines in found.items() if len(lines) > 1}
        finally:
            writer.close()

    def accesses(self) -> str:
        """What was read of projects, in order; how it was cut into commands is the clock's affair."""
        found: dict[str, list[str]] = defaultdict(list)
        for command in self.accessed:
            found[f"{command['app_id']}/{command['project_id']}"] += command["ids"]
        return _json(found)

    @asynccontextmanager
    async def served(self) -> AsyncIterator[Served]:
        """The index role over everything there is, and what it serves."""
        store, live = vector_store_of(self.settings, self.embedder), LivePage(self.settings, self._sender())
        audit = BatchedAudit(self._audit, required=False)
        index = _Index(
            self.settings,
            self.policy,
            self.embedder,
            scorer_of(self.settings, self.embedder),
            store,
            commands=self._sender(),
            erasures=self._sender(),
            audit=audit,
            live=live,
        )
        index.told = lambda answers: self.lines["index/erased"].append(_json(answers))
        app = create_api(
            ready=lambda: (True, "ready"),
            registry=CollectorRegistry(),
            routers=index.routers(),
            access=access_of(self.settings.http),
            endpoints=index.endpoints(),
            limits=self.settings.http,
        )
        self._served = Served(app, store, index, live)
        try:
            await self.index()
            app.openapi()
            async with AsyncExitStack() as running:
                for endpoint in index.endpoints():
                    if endpoint is not live:  # it would follow a broker
                        await running.enter_async_context(endpoint.running())
                yield self._served
        finally:
            await store.close()

    async def index(self) -> None:
        """Index what is new, a poll of at most so many records a partition after the other."""
        served = self._served
        while True:
            batches = {
                TP(records[0].topic, number): records
                for topic in INDEXED_TOPICS
                for number, records in self._new("index", topic.name, _POLL).items()
            }
            if not batches:
                break
            await served.index.on_records(batches)
        for topic in LIVE_TOPICS:
            for records in self._new("live", topic.name).values():
                for record in records:
                    take_live(served.live.board, topic, record)

    def _sender(self) -> Any:
        return _Sender(self)

    async def _audit(self, events: Sequence[Any]) -> None:
        for event in events:
            self.append(TOPIC_OF[type(event)].name, event.id.encode(), encode(event), headers_for(event))


class Served:
    """What is served of a world."""

    def __init__(self, app: FastAPI, store: VectorStore, index: _Index, live: LivePage) -> None:
        self.app, self.store, self.index, self.live = app, store, index, live

    async def points(self) -> Lines:
        """Payloads of all points, by collection."""
        found: Lines = {}
        for name in sorted(await self.store.collections()):
            stored, after = await self.store.page(name, "", 100_000)
            assert not after
            found[f"points/{name}"] = sorted(_json([each.key, dict(sorted(each.payload.items()))]) for each in stored)
        return found


class _Sender:
    """Takes what people do: it is folded and indexed on return."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def send(self, command: Any) -> Position:
        """A command; what was only read is kept apart, since its batches are cut by the clock."""
        world = self._world
        if msgspec.to_builtins(command)["type"] == "memories_accessed":
            world.accessed.append(msgspec.to_builtins(command))
            return Position(COMMANDS.name, 0, 0)
        return await self.write(
            COMMANDS.name, Record(entity_key(command).encode(), encode(command), headers_for(command))
        )

    async def write(self, topic: str, record: Record) -> Position:
        """Any record."""
        place = self._world.append(topic, record.key, record.value, record.headers)
        await self._world.fold()
        await self._world.index()
        return place

    async def request(self, wanted: Any) -> None:
        """An erasure; who carries it out is not here."""
        record = recorded(wanted)
        self._world.append(TOPIC_OF[type(wanted)].name, record.key, record.value, record.headers, 0)
        await self._world.index()

    async def proof(self, request_id: str) -> None:
        """None comes."""


def _record(record: ConsumerRecord) -> str:
    headers = " ".join(f"{name}={value.decode()}" for name, value in record.headers)
    value = "-" if record.value is None else record.value.decode(errors="backslashreplace")
    return f"{record.partition} {(record.key or b'').decode(errors='backslashreplace')} {headers} {value}"


def _json(value: Any) -> str:
    return msgspec.json.encode(value, order="deterministic").decode()


def _names(con: Any) -> list[tuple[str, str]]:
    """Schema and name of every table, and of every view but the one with a digest of definitions."""
    found = con.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE schema_name = ? UNION ALL "
        "SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal AND database_name = current_database() "
        "AND schema_name = 'main' ORDER BY ALL",
        [RAW],
    ).fetchall()
    return [(schema, name) for schema, name in found if name != ABOUT]


def _rows(con: Any, schema: str, name: str) -> list[str]:
    """Columns, then rows in a stable order."""
    rows = con.execute(f'SELECT * FROM {schema}."{name}"')  # noqa: S608 - of the catalog
    columns = [column[0] for column in rows.description]
    kept = [n for n, column in enumerate(columns) if column != "landed_at"]
    lines = [_json([_plain(row[n]) for n in kept]) for row in rows.fetchall()]
    return [_json([columns[n] for n in kept]), *sorted(lines)]


def _plain(value: Any) -> Any:
    """Times in UTC, whatever the machine's zone."""
    if isinstance(value, datetime):
        return value.astimezone(UTC) if value.tzinfo else value
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


async def folded(folder: Path, log: Any) -> Lines:
    """What comes of a log of an earlier release: of its turns, and of its commands as they stand."""
    world = World(folder, log.made_at, prefix=log.prefix, forwards=False)
    for topic in (TURNS.name, COMMANDS.name):
        for number, records in log.records[topic].items():
            world.load(topic, int(number), records)
    await world.fold(answer=False)
    return world.written(TURNS.name, COMMANDS.name)


def quiet() -> None:
    """Log errors only: a language model that is not there is worth a warning each time."""
    configure_logging(level="error")


@contextmanager
def frozen(at: datetime) -> Iterator[None]:
    """Let the product's clock stand still, and its random names be counted."""

    class _Likewise(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, datetime)

    class _Still(datetime, metaclass=_Likewise):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return at.astimezone(tz)

    numbers = count(1)

    class _Named:
        def __init__(self) -> None:
            self.hex = f"{next(numbers):032x}"

    with ExitStack() as patched:
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] not in _PROJECTS or module is None:
                continue
            if vars(module).get("uuid4") is uuid4:
                patched.enter_context(patch.object(module, "uuid4", _Named))
            if vars(module).get("datetime") is datetime and "datetime.now(" in inspect.getsource(module):
                patched.enter_context(patch.object(module, "datetime", _Still))
        yield
