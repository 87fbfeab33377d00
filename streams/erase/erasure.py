"""One erasure, from the request to the proof. Every step may be repeated: a new try begins at the first.

1. Find out whose sessions, users, spaces and projects are concerned, from archive, logs and state.
2. Sessions: write what erases their users, then `SessionErased`; wait until the sessions role has folded it.
3. Users, spaces and projects: write what erases them, again, wait until it is folded and no answer is under way: of
   what was asked before, the folds take none.
4. Null records for what compacted topics still have.
5. Vectors: wait until the index has read everything, have it remove the subject's points.
6. Archive: wait until it has everything, then remove the subject's rows and their bytes.
7. If asked for: the logs' own files.
8. Look at everything again, and write down what was found.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import UTC, datetime

import structlog
from aiokafka import TopicPartition
from msgspec import Struct

from models.entities import entity_key
from models.erasure import digest
from models.events import (
    DEFAULT_APP,
    CompactionRequested,
    ErasedSession,
    ErasedStore,
    EraseRequested,
    ErasureProved,
    SessionErased,
    SessionName,
    VectorsErasureDue,
    session_key,
)
from models.events.topics import (
    COMMANDS,
    ERASURES,
    JUDGEMENTS,
    MEMORY_STATE,
    PROJECTS,
    REQUESTS,
    SESSION_STATE,
    TURNS,
    Topic,
)
from models.wire.codec import encode
from models.wire.envelope import headers_for
from streams.erase.archive import WriterArchive
from streams.erase.concerned import (
    Concerned,
    OfMemory,
    Span,
    User,
    checked,
    of_sessions,
    of_users,
    remembered_in,
    root_of,
    spoke_in,
    subject_of,
)
from streams.erase.logs import Logs, Readers, ReadersBehind
from streams.erase.purge import purge
from streams.erase.record import PLACE, ErasureRecords, recorded
from streams.erase.residual import (
    ARCHIVED,
    CHANGELOGS,
    COMPACTED,
    INDEXED,
    PUBLIC,
    SPOKEN_IN,
    TYING,
    ResidualRecords,
    Tally,
    count_found,
    stores_of,
)
from streams.erase.sweep import look, look_at_state, stands_on, sweep
from streams.kafka.producer import Record
from streams.kafka.topics import existing_topics

log = structlog.get_logger(__name__)

_ANSWERED = (
    ("memory", COMMANDS),
    ("judge", JUDGEMENTS),
    ("enrich", REQUESTS),
    ("sessions", TURNS),
    ("memory", COMMANDS),
)


class Erasure:
    """Carries out one request; `records` brings the index's answer, `tally` what earlier tries here found."""

    def __init__(
        self,
        request: EraseRequested,
        *,
        logs: Logs,
        readers: Readers,
        archive: WriterArchive,
        records: ErasureRecords,
        tally: Tally,
    ) -> None:
        self._request = checked(request)
        self._logs = logs
        self._readers = readers
        self._archive = archive
        self._records = records
        self._tally = tally
        self._concerned = Concerned()
        self._subject = subject_of(request, ())
        self._until: dict[TopicPartition, int] | None = None
        self._sessions_until: dict[TopicPartition, int] = {}
        self._stands_on: dict[str, set[int]] = {}
        self._spoken_on: set[int] = set()
        self._anything = False
        self._keys: dict[Topic, set[bytes | None]] = {}
        self._log = log.bind(request_id=request.request_id)

    async def run(self) -> ErasureProved:
        """Erase, and say what came of it; the proof is not written yet.

        Raises:
            ConfigurationError: The request names too much or too little, or the broker refuses something.
            ReadersBehind: A role is away.
            StoreUnavailable: Kafka or the archive does not serve.
            DeliveryFailed: Kafka did not take something.
        """
        await self._find()
        await self._forget_sessions()
        await self._forget_users()
        stores = await self._forget_vectors()
        self._step("archive")
        await self._readers.archived(await self._logs.ends(*ARCHIVED))
        stores += self._tally.erased(await self._archive.erase(self._subject))
        if self._request.purge_logs:
            await self._purge()
        return await self._proof(stores)

    def _step(self, step: str) -> None:
        self._log.info("erasure_step", step=step)

    # --- who

    async def _find(self) -> None:
        self._step("find")
        request, concerned = self._request, self._concerned
        turns = await self._logs.ends(TURNS)
        await self._readers.beyond("sessions", turns)
        await self._readers.archived(turns)
        asked_for = await self._named(request.app_id, filter(None, [request.session_id]))
        concerned.sessions.update({session: {} for session in asked_for})
        self._subject = subject_of(request, asked_for)
        if asked := self._records.due.get(request.request_id):
            # A try that was cut short may have removed all that tells of them, but not their bytes.
            self._anything = True
            known = {SessionName(each.app_id, each.session_id) for each in asked.sessions}
            for session in known or await self._named(asked.app_id, asked.session_ids):
                concerned.sessions.setdefault(session, {})
        for session_id, app_id, user_id, first, last in await self._archive.sessions_of(request):
            concerned.spoke(session_id, User(app_id, user_id), Span(first, last))
            self._anything = True
        for topic in SPOKEN_IN:
            async for event in self._events(topic):
                if self._subject.names(event):
                    for session_id, user, span in spoke_in(event, self._subject):
                        concerned.spoke(session_id, user, span)
                    self._remembered(event)
        namesakes = await self._archive.namesakes_of(concerned.sessions)
        self._subject = subject_of(request, concerned.sessions, namesakes)
        for topic in TYING:
            await self._follow(topic)
        await self._look_at_first()
        self._log.info("erasure_found", sessions=len(concerned.sessions), users=len(concerned.users))

    async def _named(self, app_id: str, session_ids: Iterable[str]) -> set[SessionName]:
        """Sessions by their ids; where an earlier release named no app, those of every app that has one."""
        ids = set(session_ids)
        if app_id or not ids:
            return {SessionName(app_id, session_id) for session_id in ids}
        known = await self._archive.namesakes_of({SessionName("", session_id) for session_id in ids})
        unknown = ids - {session.session_id for session in known}
        return known | {SessionName(DEFAULT_APP, session_id) for session_id in unknown}

    async def _follow(self, topic: Topic) -> None:
        """Tie what came of the subject's sessions to it."""
        tying: list[Struct] = []
        async for event in self._events(topic):
            if isinstance(event, CompactionRequested) or self._subject.names(event):
                tying.append(event)
                self._remembered(event)
        self._subject = self._subject.follow(tying)

    async def _events(self, topic: Topic) -> AsyncIterator[Struct]:
        async for record in self._logs.read(await self._logs.extents(topic)):
            if (event := self._logs.event_of(topic, record)) is not None:
                yield event

    def _remembered(self, event: Struct) -> None:
        for project, session_id in remembered_in(event, self._subject):
            self._concerned.remembered(project, session_id)

    async def _look_at_first(self) -> None:
        for topic in (*PUBLIC, *CHANGELOGS):
            residual = await self._look(topic)
            count_found(topic, residual, self._tally)
            self._anything |= bool(residual.places)
            if topic is SESSION_STATE:
                self._stands_on = stands_on(residual)
            if topic is TURNS:
                self._spoken_on = {place.partition for place, past in residual.past.items() if past.count}
            if topic is MEMORY_STATE:
                self._concerned.known(stands_on(residual), self._subject)

    async def _look(self, topic: Topic) -> ResidualRecords:
        if topic.public:
            keys = self._keys.setdefault(topic, set())
            residual = await look(self._logs, topic, self._subject.concerns, keys=keys, until=self._until)
            keys |= residual.keys
            return residual
        touched = self._concerned.touched
        return await look_at_state(
            self._logs,
            topic,
            owned=self._subject.owns_session if topic is SESSION_STATE else self._subject.owns,
            touched=lambda entity: root_of(entity) in touched,
            until=self._until,
        )

    # --- state

    async def _forget_sessions(self) -> None:
        if self._anything:  # else every further erasure of a session would leave a trace for the next one to find
            self._step("sessions")
            # Before them: what a user has of a session would come into it as soon as it goes on.
            await self._erase_users()
            await self._send_events(TURNS, of_sessions(self._request, self._concerned, datetime.now(UTC)))
            await self._all_read(("sessions", TURNS))
        # At once: a session that goes on is a new one.
        self._sessions_until = await self._logs.ends(SESSION_STATE)

    async def _forget_users(self) -> None:
        """Also what came since, and those whom the state alone knows."""
        self._step("users")
        await self._all_read(("memory", COMMANDS))
        # Known to the state by now, though no log may tell of them any more.
        self._concerned.known(stands_on(await self._look(MEMORY_STATE)), self._subject)
        await self._follow(PROJECTS)  # likewise: what was said a moment ago may have come into another project
        await self._erase_users()
        await self._all_read(*_ANSWERED)  # an answer under way is of no use, but it names them: it must be counted
        forgotten = {**await self._logs.ends(MEMORY_STATE), **self._sessions_until}
        for topic in TYING:
            await self._follow(topic)
        self._step("topics")
        for topic in COMPACTED:
            await sweep(self._logs, topic, self._subject.concerns)
        self._until = {**await self._logs.ends(*PUBLIC), **forgotten}

    async def _erase_users(self) -> None:
        await self._send_events(COMMANDS, of_users(self._request, self._concerned, self._subject, datetime.now(UTC)))

    async def _all_read(self, *stages: tuple[str, Topic]) -> None:
        """Once each: waiting until nothing is under way would never end where many talk."""
        for role, topic in stages:
            await self._readers.beyond(role, await self._logs.ends(topic))

    async def _send_events(self, topic: Topic, events: Iterable[SessionErased | OfMemory]) -> None:
        by_place: dict[TopicPartition, list[Record]] = {}
        for event in events:
            name, numbers = entity_key(event), set[int]()
            if isinstance(event, SessionErased):
                # One that no fold knows any more: an index that reads the log anew must not find its turns again.
                numbers = self._stands_on.get(session_key(event.app_id, event.session_id), self._spoken_on)
            places = [TopicPartition(self._logs.name(topic), number) for number in sorted(numbers)]
            for place in places or [await self._logs.place_of(topic, name.encode())]:
                by_place.setdefault(place, []).append(Record(name.encode(), encode(event), headers_for(event)))
        await self._logs.write(by_place)

    # --- stores

    async def _forget_vectors(self) -> list[ErasedStore]:
        works_here = await self._readers.works_here("index")
        if not works_here and self._records.index_was_here:
            raise ReadersBehind(
                "no index role is running, but one answered earlier: its data of the subject still exists. "
                "The erasure stays pending until its worker runs"
            )
        if not works_here and not self._anything:
            return []
        self._step("vectors")
        await self._readers.beyond("index", await self._logs.ends(*INDEXED))
        request, place = self._request, TopicPartition(self._logs.name(ERASURES), PLACE)
        due = VectorsErasureDue(
            request_id=request.request_id,
            timestamp=datetime.now(UTC),
            scope=request.scope,
            app_id=request.app_id,
            user_id=request.user_id,
            session_ids=sorted({session.session_id for session in self._concerned.sessions}),
            sessions=[ErasedSession(*session) for session in sorted(self._concerned.sessions)],
        )
        # Each try asks anew: an answer to an earlier one knows nothing of what was said since. Without an index too:
        # it tells the next try of the sessions once neither archive nor logs do.
        offset = await self._logs.producer.write_whole(place.topic, place.partition, [recorded(due)])
        if not works_here:
            return []
        await self._readers.beyond("index", {place: offset + 1})
        await self._records.refresh(self._logs)
        if self._records.answered_at.get(request.request_id, -1) < offset:
            raise ReadersBehind(
                "the index role has read the request but not answered it: it was restarted in between. "
                "The erasure stays pending and repeats the request"
            )
        return list(self._records.vectors[request.request_id].stores)

    # --- logs

    async def _purge(self) -> None:
        self._step("logs")
        places = {topic: (await self._look(topic)).places for topic in (*PUBLIC, *CHANGELOGS)}
        compacted = [topic for topic in (*COMPACTED, *CHANGELOGS) if places[topic]]

        async def is_clean() -> bool:
            return all([(await self._look(topic)).is_clean for topic in compacted])

        await purge(self._logs, self._readers, self._request.request_id, places, is_clean)

    # --- proof

    async def _proof(self, stores: Sequence[ErasedStore]) -> ErasureProved:
        self._step("proof")
        now = datetime.now(UTC)
        request, counted = self._request, list(stores)
        topics = (*PUBLIC, *CHANGELOGS)
        existing = await existing_topics(self._logs.admin, [self._logs.name(topic) for topic in topics])
        for topic in topics:
            config = existing[self._logs.name(topic)].config
            counted += stores_of(topic, await self._look(topic), self._tally, config, now)
        return ErasureProved(
            request_id=request.request_id,
            timestamp=now,
            scope=request.scope,
            subject=digest(request.scope, request.app_id, request.user_id, request.session_id),
            by=request.by,
            requested_at=request.timestamp,
            sessions=len(self._concerned.sessions),
            stores=counted,
            complete=not any(store.remaining for store in counted),
        )
