"""The product in one process, without a broker: logs are folded, answered, landed, indexed and served as roles do it.

All names of the product that the golden test needs stand here and in `contracts`; events are told apart by their tags.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from functools import cache
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
from aiokafka import TopicPartition
from aiokafka.partitioner import murmur2
from aiokafka.structs import ConsumerRecord
from faust.types import TP
from prometheus_client import CollectorRegistry

from models.entities import REGISTRY, TOPIC_OF, entity_key
from models.erasure import ErasureSubject, sessions_of
from models.events.base import Position, SessionName
from models.events.topics import COMMANDS, REQUESTS, TURNS
from models.wire.codec import decode_output, encode
from models.wire.envelope import headers_for, key_of
from streams.api.live.feed import TOPICS as LIVE_TOPICS
from streams.api.live.feed import take as take_live
from streams.api.live.service import LivePage
from streams.archive.buffer import LandingBuffer, Move
from streams.archive.erasing import erase
from streams.archive.landed import land_all
from streams.archive.place import LakePaths
from streams.archive.writer import LakeWriter
from streams.erase.record import recorded
from streams.http.audit import BatchedAudit
from streams.http.health import Api, create_api
from streams.inference.episode_embeddings import episode_vectors
from streams.inference.llm_memories import MemoryWriter
from streams.inference.summaries import answerers
from streams.kafka.producer import Record
from streams.observe.telemetry import configure_logging
from streams.oracle.replay import LogReplay, SessionReplay, UsersReplay
from streams.ports import Embedder
from streams.roles.index import IndexRole
from streams.settings import load_settings
from streams.wiring import policy_of, scorer_of, stream_embedder_of, summariser_of, vector_store_of

__all__ = ["COMMANDS", "TURNS", "Lines", "World", "encode"]

_PARTITIONS = 2
_ROUND, _POLL = 50, 1_000
"""Records of a partition between two looks at what was asked and forwarded; and of a poll of the index."""
Lines = dict[str, list[str]]
"""Section → its lines."""


@cache
def _embedder() -> Embedder:
    """Loading its weights takes a while."""
    return stream_embedder_of(load_settings())


class _Noted(LogReplay[Any]):
    """A replay that says what it writes."""

    world: World
    _at = 0

    def fold(self, partition: int, records: Sequence[ConsumerRecord]) -> None:
        self._at = partition
        super().fold(partition, records)

    def _keep(self, events: Sequence[Any]) -> None:
        super()._keep(events)
        self.world.publish(self._at, events)

    def _new_fold(self, entities: Any) -> Callable[[Sequence[Any]], Iterator[Any]]:
        fold = super()._new_fold(entities)  # type: ignore[safe-super]

        def noted(arrivals: Sequence[Any]) -> Iterator[Any]:
            for result in fold(arrivals):
                self.world.changed(self.folded.changelog.name, self._at, result.changed)
                yield result

        return noted


class _Sessions(_Noted, SessionReplay):
    """Sessions, from `turns.v1`."""


class _Memory(_Noted, UsersReplay):
    """Users, apps and projects, from `commands.v1`."""


class _Index(IndexRole):
    """The role without a broker."""

    world: World

    async def fence(self) -> None:
        """Nobody else is there."""

    async def _answer(self, answers: Any) -> None:
        self.world.lines["index/erased"].append(_json(answers))


class World:
    """Logs, and the roles over them; what people do over HTTP is folded and indexed when it is written.

    Args:
        folder: Where archive and index are put.
        now: What the broker stamps records with.
        prefix: Of the topics.
        forwards: Whether what sessions forward is folded on; else it is only told.
        settings: Of all roles.

    Attributes:
        lines: What was written, by section.
        model: Answers requests as a language model might, both as plain JSON; None: as where there is none.
    """

    def __init__(
        self, folder: Path, now: datetime, *, prefix: str = "golden", forwards: bool = True, **settings: Any
    ) -> None:
        configure_logging(level="error")
        self.now, self.folder, self._prefix, self._forwards = now, folder, prefix, forwards
        self.lines: Lines = defaultdict(list)
        self.model: Callable[[dict[str, Any]], dict[str, Any] | None] = lambda _: None
        self.settings = load_settings(data_dir=folder, topic_prefix=prefix, **settings)
        self.policy, self.embedder = policy_of(self.settings), _embedder()
        self._scorer = scorer_of(self.settings, self.embedder)
        self._log: dict[str, list[list[ConsumerRecord]]] = {
            t.name: [[] for _ in range(_PARTITIONS)] for t in REGISTRY.topics
        }
        self._read: Counter[tuple[str, str, int]] = Counter()
        self._folds: tuple[_Noted, ...] = (_Sessions(self.policy, self.embedder, self._scorer), _Memory(self.policy))
        for fold in self._folds:
            fold.world = self
        writer = MemoryWriter(None, self.policy.apps, within=self.settings.llm.memory_timeout)
        self._answerers = answerers(summariser_of(self.settings, None), None, writer)

    # --- the log

    def records(self, topic: str) -> list[ConsumerRecord]:
        """All of a topic, partition after partition."""
        return [record for records in self._log[topic] for record in records]

    def events(self, topic: str) -> list[dict[str, Any]]:
        """Likewise, read as plain JSON."""
        return [msgspec.json.decode(record.value) for record in self.records(topic)]

    def append(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Any = (), place: int | None = None
    ) -> Position:
        """Write a record, by default where its key belongs."""
        number = (murmur2(key or b"") & 0x7FFFFFFF) % _PARTITIONS if place is None else place
        log, stamp, name = self._log[topic][number], int(self.now.timestamp() * 1000), f"{self._prefix}.{topic}"
        sizes = len(key or b""), len(value or b"")
        log.append(ConsumerRecord(name, number, len(log), stamp, 1, key, value, None, *sizes, tuple(headers)))
        return Position(topic, number, len(log) - 1)

    def say(self, topic: str, key: str, tag: str, **fields: Any) -> None:
        """Write an event that is named by its tag."""
        self.append(topic, key.encode(), msgspec.json.encode({"type": tag, "timestamp": self.now, **fields}))

    def publish(self, partition: int | None, events: Sequence[Any]) -> None:
        """Write what a role emits."""
        for event in events:
            topic = TOPIC_OF[type(event)]
            if topic is COMMANDS and not self._forwards:
                self.lines[f"topics/{topic.name} forwarded"].append(encode(event).decode())
            else:
                place = None if topic is COMMANDS else partition
                self.append(topic.name, key_of(event), encode(event), headers_for(event), place)

    def changed(self, changelog: str, partition: int, changed: Mapping[str, Mapping[str, bytes | None]]) -> None:
        """What one write of state says, sorted; and, apart, in which order it says it."""
        order, at = self.lines[f"state/{changelog} order"], f"{partition} {len(self.lines[f'state/{changelog} order'])}"
        parts = {f"{entity}|{part}": value for entity, of in changed.items() for part, value in of.items()}
        self.lines[f"state/{changelog}"] += [f"{at} {key} {_part(value)}" for key, value in sorted(parts.items())]
        order.append(f"{at} {' '.join(parts)}")

    def _new(self, reader: str, topic: str, most: int | None = None) -> dict[int, list[ConsumerRecord]]:
        """What a reader has not seen of a topic, by partition."""
        found = {}
        for number, log in enumerate(self._log[topic]):
            if records := log[self._read[reader, topic, number] :][:most]:
                self._read[reader, topic, number] += len(records)
                found[number] = records
        return found

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
            for record in chain.from_iterable(self._new("enrich", REQUESTS.name).values() if answer else ()):
                busy = await self._answer(record.key, record.value) or busy

    async def _answer(self, key: bytes, value: bytes) -> bool:
        """Whether there was something to say."""
        request: Any = decode_output(REQUESTS, value)
        topic, place = COMMANDS, None
        if key.startswith(b"session:"):
            topic, key, place = TURNS, request.session_id.encode(), request.source.partition
        if (told := self.model(msgspec.json.decode(value))) is not None:
            self.append(topic.name, key, msgspec.json.encode(told), place=place)
            return True
        reply: Any = await self._answerers[type(request)](request)
        if reply is None:
            return False
        if "embedding" in reply.__struct_fields__:
            (row,) = episode_vectors(self.embedder, [[turn.content for turn in request.turns]]).round(5).tolist()
            reply = msgspec.structs.replace(reply, embedding=row, embedded_by=self.embedder.name)
        self.append(topic.name, key, encode(reply), headers_for(reply), place)
        return True

    async def remind(self) -> None:
        """Let work go on that is due by now, of every space and project."""
        for key in sorted({record.key.decode() for record in self.records(COMMANDS.name)}):
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
        for topic in REGISTRY.topics:
            for records in self._new("written", topic.name).values():
                if topic.name not in besides:
                    found[f"topics/{topic.name}"] += map(_record, records)
        return dict(found)

    def archived(self, *, erase_scope: str) -> Lines:
        """Rows of the archive's tables and views once all is landed, and what erasures find; one is carried out."""
        buffer = LandingBuffer()
        for topic in REGISTRY.archived_topics:
            for number, records in enumerate(self._log[topic.name]):
                name = f"{self._prefix}.{topic.name}"
                landing = land_all(topic, name, records, self.policy.intake)
                buffer.take(landing.rows)
                buffer.skip_all(landing.skipped)
                buffer.moves[TopicPartition(name, number)] = Move(None, 0, len(records))
        writer = LakeWriter(LakePaths(self.folder / "catalog.sqlite", f"{self.folder}/data/"))
        try:
            writer.land(buffer, now=self.now)
            return _tables(writer.con) | self._forgotten(writer, erase_scope)
        finally:
            writer.close()

    def _subjects(self) -> Iterator[ErasureSubject]:
        """A session, the user with most sessions, and an app."""
        owners = {
            SessionName(event["app_id"], event["session_id"]): (event["app_id"], event["user_id"])
            for event in self.events("profiles.v1")
        }
        ((user, _),), app_id = Counter(owners.values()).most_common(1), max(owners.values())[0]
        first = min(owners, key=lambda name: (name.session_id, name.app_id))
        yield ErasureSubject("session", sessions=sessions_of([first], owners))
        yield ErasureSubject("user", *user, sessions_of((n for n, owner in owners.items() if owner == user), owners))
        yield ErasureSubject("app", app_id, "", sessions_of((n for n in owners if n.app_id == app_id), owners))

    def _forgotten(self, writer: LakeWriter, erase_scope: str) -> Lines:
        """Which records of the product's own are each subject's, and what the archive removes of one of them."""
        own = [(t, record) for t in REGISTRY.topics if t.public and t is not TURNS for record in self.records(t.name)]
        events: list[Any] = [decode_output(topic, record.value) for topic, record in own]
        places, found = [f"{topic.name} {record.partition} {record.offset}" for topic, record in own], {}
        for named in self._subjects():
            subject = named.follow(events)
            concerned = [place for place, event in zip(places, events, strict=True) if subject.concerns(event)]
            found[f"erased/{subject.scope}"] = concerned
            if subject.scope == erase_scope:  # it takes seconds
                found["erased/archive"] = [_json(store) for store in erase(writer, subject, now=self.now)]
        return found

    @asynccontextmanager
    async def served(self) -> AsyncIterator[Api]:
        """What the index role serves over everything there is."""
        self.store, self.live = vector_store_of(self.settings, self.embedder), LivePage(self.settings, self)
        asked: dict[str, Any] = {
            "commands": self,
            "writer": self,
            "erasures": self,
            "live": self.live,
            "audit": BatchedAudit(self._audit, required=False),
        }
        self._index = _Index(self.settings, self.policy, self.embedder, self._scorer, self.store, **asked)
        self._index.world = self
        app = create_api(
            ready=lambda: (True, "ready"),
            registry=CollectorRegistry(),
            routes=self._index.routes(),
            endpoints=self._index.endpoints(),
            http=self.settings.http,
        )
        try:
            await self.index()
            async with AsyncExitStack() as running:
                for endpoint in self._index.endpoints():
                    if endpoint is not self.live:  # it would follow a broker
                        await running.enter_async_context(endpoint.running())
                yield app
        finally:
            await self.store.close()

    async def index(self) -> None:
        """Index what is new, and let the live page know."""
        while batches := {
            TP(records[0].topic, number): records
            for topic in REGISTRY.indexed_topics
            for number, records in self._new("index", topic.name, _POLL).items()
        }:
            await self._index.on_records(batches)
        for topic in LIVE_TOPICS:
            for record in chain.from_iterable(self._new("live", topic.name).values()):
                take_live(self.live.board, topic, record)

    async def points(self) -> Lines:
        """Payloads of all points, by collection."""
        found = {name: await self.store.page(name, "", 100_000) for name in sorted(await self.store.collections())}
        assert not any(after for _, after in found.values())
        return {f"points/{name}": sorted(map(_json, stored)) for name, (stored, _) in found.items()}

    # --- what people do

    async def send(self, command: Any) -> Position:
        """A command; ids that were only read are noted apart, since how they are cut into commands is the clock's."""
        if msgspec.to_builtins(command)["type"] == "memories_accessed":
            self.lines[f"index/accessed {entity_key(command)}"] += command.ids
            return Position(COMMANDS.name, 0, 0)
        key = entity_key(command).encode()
        return await self.write(COMMANDS.name, Record(key, encode(command), headers_for(command)))

    async def write(self, topic: str, record: Record) -> Position:
        """Any record."""
        place = self.append(topic, *record)
        await self.fold()
        await self.index()
        return place

    async def request(self, wanted: Any) -> None:
        """An erasure; who carries it out is not here."""
        await self.write(TOPIC_OF[type(wanted)].name, recorded(wanted))

    async def proof(self, request_id: str) -> None:
        """None comes."""

    async def _audit(self, events: Sequence[Any]) -> None:
        for event in events:
            self.append(TOPIC_OF[type(event)].name, event.id.encode(), encode(event), headers_for(event))


def _part(value: bytes | None) -> str:
    """Size and digest of a part's bytes, and what they say."""
    if value is None:
        return "-"
    try:
        shown = _json(msgspec.msgpack.decode(value))
    except (msgspec.MsgspecError, TypeError, UnicodeDecodeError):
        shown = "packed"
    return f"{len(value)} {sha256(value).hexdigest()[:16]} {shown}"


def _record(record: ConsumerRecord) -> str:
    headers = " ".join(f"{name}={value.decode()}" for name, value in record.headers)
    key, value = ((each or b"").decode(errors="backslashreplace") for each in (record.key, record.value))
    return f"{record.partition} {key} {headers} {value}"


def _json(value: Any) -> str:
    return msgspec.json.encode(value, order="deterministic").decode()


def _tables(con: Any) -> Lines:
    """Rows of every table and view but the one with a digest of definitions; those without rows are left out."""
    con.execute("SET TimeZone = 'UTC'")
    names = con.execute(
        "SELECT schema_name || '.' || table_name FROM duckdb_tables() WHERE schema_name = 'raw' UNION ALL "
        "SELECT schema_name || '.' || view_name FROM duckdb_views() WHERE NOT internal AND schema_name = 'main' "
        "AND database_name = current_database() AND view_name <> 'archive_version'"
    ).fetchall()
    found = {}
    for (name,) in names:
        rows = con.execute(f"SELECT to_json(t)::VARCHAR FROM {name} t ORDER BY ALL").fetchall()  # noqa: S608
        found[f"archive/{name}"] = [row for (row,) in rows]
    return found
