"""A subject leaves the archive: every row, every file, every byte of the catalog, and nobody else's."""

import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest
from msgspec import Struct
from msgspec.structs import replace

from models import events
from models.entities import REGISTRY, carried_by
from models.erasure import ErasureSubject
from models.events.topics import COMMANDS, DEAD_LETTERS, FACTS, MEMORIES, TURNS, Topic
from streams.archive import removal
from streams.archive.erasing import SubjectRows, erase
from streams.archive.maintenance import maintain
from streams.archive.schema import FORGETTING, RAW, SKIPPED, TABLE_OF, TABLES
from streams.archive.vacuum import vacuum
from streams.archive.verify import verify
from streams.archive.writer import LakeWriter
from tests.support.bytes_left import files_with
from tests.support.lake_records import NOW, PREFIX, Record, buffer_of, example, land_all, turn
from tests.support.subjects import of_session, sessions

CANARY = "canaryfeathers"
_WHEN = int((NOW + timedelta(hours=1)).timestamp() * 1000)


def examples(topic: Topic) -> list[Struct]:
    """The contracts' example of everything that a topic carries."""
    return [example(kind) for kind in carried_by(topic)]


def of_another(event: Any) -> Struct:
    """The same, of another user of another app in another session."""
    others = {"session_id": "theirs", "user_id": "bea", "app_id": "bank"}
    known = {name: value for name, value in others.items() if getattr(event, name, "") and hasattr(event, name)}
    lists: dict[type[Struct], dict[str, Any]] = {
        events.AppMemoryChanged: {"related_conversations": []},
        events.EpisodeCompressed: {"turns": [events.SessionTurns("theirs", [1])]},
        events.UserMemoryChanged: {"short_term": []},
        events.SpaceSessionErased: {"session_ids": ["theirs"]},
        events.ProjectSessionErased: {"session_ids": ["theirs"]},
        events.ConversationStatusSet: {"conversation_id": "theirs"},
        events.ProjectItemChanged: {"memory": None, "active": False, "item_id": "a-0"},
        events.ProjectImported: {
            kind: [] for kind in ("memories", "episodes", "chunks", "conversations", "pending", "messages")
        },
        events.DeadLetter: {"key": b"theirs", "value": b"{"},
    }
    other: Struct = replace(event, **known, **lists.get(type(event), {}))
    return other


def rows_of(writer: LakeWriter, subject: ErasureSubject) -> set[tuple[str, int]]:
    """Tables and offsets of the rows that an erasure would take."""
    rows = SubjectRows(writer.con, subject)
    sql = " UNION ALL ".join(
        f"SELECT '{name}', kafka_offset FROM {RAW}.{name} AS r WHERE {rows.condition(name)}"  # noqa: S608
        for name in TABLES
        if name != "risk_points"
    )
    return set(writer.con.execute(sql, rows.parameters(sql)).fetchall())


def ruled(subject: ErasureSubject, by_topic: Mapping[Topic, Sequence[Struct]]) -> set[tuple[str, int]]:
    """The same by the rule for topics."""
    landed = [event for kinds in by_topic.values() for event in kinds if not isinstance(event, FORGETTING)]
    whole = subject.follow(landed)
    return {
        (TABLE_OF[type(event)].name, n)
        for kinds in by_topic.values()
        for n, event in enumerate(kinds)
        if type(event) in TABLE_OF and whole.concerns(event)
    }


APP = "shop-assistant"
"""Whose the contracts' examples are."""
SUBJECTS = [
    of_session("order-4711", app_id=APP),
    ErasureSubject("user", APP, "user-17", sessions("order-4711", app_id=APP)),
    ErasureSubject("user", "", "user-17", sessions("order-4711", app_id=APP)),
    ErasureSubject("app", APP, "", sessions("order-4711", app_id=APP)),
]


def test_every_kind_of_event_goes_as_the_rule_says(writer: LakeWriter) -> None:
    """The archive's SQL and the rule for topics must never differ, whoever is forgotten."""
    landed = {topic: [*examples(topic), *map(of_another, examples(topic))] for topic in REGISTRY.archived_topics}
    land_all(writer, landed)

    found = [rows_of(writer, subject) for subject in SUBJECTS]

    assert [ruled(subject, landed) for subject in SUBJECTS] == found
    assert all(len(rows) > 15 for rows in found)


def tied() -> dict[Topic, tuple[list[Struct], list[Struct]]]:
    """By topic: what is tied to the session of the examples without naming it, and what only looks like it."""
    stranger = {"session_id": "theirs", "user_id": "bea"}
    fact = example(events.FactChanged)
    past = events.PastFact(value=fact.value, confidence=1, valid_from=fact.valid_from, valid_until=NOW)
    memory, compacted = example(events.AppMemoryChanged), example(events.AppMemoriesCompacted)
    by_topic: dict[str, tuple[list[Struct], list[Struct]]] = {}
    by_topic["memories.v1"] = (
        [memory, replace(memory, **stranger, related_conversations=[])],
        [replace(memory, **stranger, related_conversations=[], memory_id=4)],
    )
    unlisted = {"before": [replace(compacted.before[0], memory_id=4)], "after": []}
    by_topic["memory-events.v1"] = ([replace(compacted, **stranger)], [replace(compacted, **stranger, **unlisted)])
    by_topic["facts.v1"] = (
        [fact, replace(fact, session_id="theirs", valid_from=NOW, history=[past])],
        [
            replace(fact, session_id="theirs", valid_from=NOW, history=[]),
            replace(fact, session_id="theirs", valid_from=NOW, key="nickname", history=[past]),
        ],
    )
    by_topic["user-episodes.v1"] = ([example(events.EpisodeCompressed)], [])
    by_topic["commands.v1"] = (
        [
            example(events.CompactionDecided),
            replace(example(events.MemoryDeleted), memory_id=memory.memory_id),
            example(events.EpisodeSummarised),
        ],
        [
            replace(example(events.CompactionDecided), user_id="bea"),
            replace(example(events.MemoryDeleted), memory_id=9),
            replace(example(events.EpisodeSummarised), first_turn=21, last_turn=40),
        ],
    )
    return {topic: by_topic[topic.name] for topic in REGISTRY.archived_topics if topic.name in by_topic}


def test_what_is_tied_goes_and_what_looks_like_it_stays(writer: LakeWriter) -> None:
    """Memories by number, facts by since when, episodes by their first turn; as `ErasureSubject.follow` has it."""
    landed = tied()
    together = {topic: [*theirs, *others] for topic, (theirs, others) in landed.items()}
    land_all(writer, together)

    found = rows_of(writer, SUBJECTS[0])

    assert found == ruled(SUBJECTS[0], together)
    assert found == {(TABLE_OF[type(event)].name, n) for theirs, _ in landed.values() for n, event in enumerate(theirs)}


CANARIES = ErasureSubject("app", f"app-{CANARY}", "", sessions(f"s-{CANARY}", app_id=f"app-{CANARY}"))


def land_turns(writer: LakeWriter) -> None:
    """Two sessions in files of two landings, merged; a refused turn, dead letters, undecodable outputs, a tombstone."""
    for n in (0, 20):
        batch = [
            turn(k // 2) if k % 2 else turn(k // 2, session_id=f"s-{CANARY}", app_id=f"app-{CANARY}", content=CANARY)
            for k in range(n, n + 20)
        ]
        writer.land(buffer_of([*batch, *[b"{"] * (n // 20)], first=n, expected=n or None), now=NOW)
    place: dict[str, Any] = {"topic": TURNS.full_name(PREFIX), "partition": 0}
    of_app = f'{{"app_id":"app-{CANARY}"'.encode()
    letters = [
        replace(examples(DEAD_LETTERS)[0], **place, key=key, value=value, offset=40 + n)
        for n, (key, value) in enumerate([(f"s-{CANARY}".encode(), of_app), (b"s-1", b"{}")])
    ]
    undecodable = [
        Record(0, 0, _WHEN, f"user:app-{CANARY}/anna/identity/name".encode(), b"{"),
        Record(0, 1, _WHEN, b"x", of_app),
        Record(0, 2, _WHEN, f"user:app-{CANARY}/anna".encode(), None),
        Record(0, 3, _WHEN, b"user:other/anna", b"{"),
    ]
    land_all(writer, {DEAD_LETTERS: letters, FACTS: undecodable})
    maintain(writer, now=NOW, keep_replaced=timedelta(hours=1), everything=True)


def test_views_do_not_bring_it_back(writer: LakeWriter) -> None:
    """A memory's earlier text, of another session, must not become the latest when the merged one goes."""
    memory: Any = examples(MEMORIES)[0]
    first = replace(memory, id="1", session_id="theirs", user_id="bea", related_conversations=[], cause="created")
    merged = replace(memory, id="2", session_id="theirs", user_id="bea", related_conversations=["order-4711"])
    gone = replace(first, id="3", active=False, content="", cause="erased")
    other = replace(first, id="4", memory_id=9, slot=5)
    land_all(writer, {MEMORIES: [first, merged, gone, other]})

    erase(writer, SUBJECTS[0], now=NOW)

    assert writer.con.execute("SELECT memory_id FROM app_memories").fetchall() == [(9,)]


class Killed(BaseException):
    """Nothing catches it."""


class Deadly:
    """A connection that does not come to a statement."""

    def __init__(self, con: Any, fatal: str) -> None:
        self._con = con
        self._fatal = fatal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._con, name)

    def execute(self, sql: str, *arguments: Any) -> Any:
        """Run a statement but the one."""
        if self._fatal in sql:
            raise Killed
        return self._con.execute(sql, *arguments)


def test_killed_in_the_middle_the_next_call_completes(writer: LakeWriter, tmp_path: Path) -> None:
    """Rows deleted, files written anew, files deleted, a merge's orphan: what still holds the bytes goes then."""
    land_turns(writer)
    a_file = next(path for path in tmp_path.rglob("*.parquet") if CANARY.encode() in path.read_bytes())
    shutil.copy(a_file, a_file.with_stem(f"ducklake-{uuid4()}"))

    for before in ("rewrite_data_files", "cleanup_old_files"):
        alive = writer.con
        writer.con = Deadly(alive, before)  # type: ignore[assignment]
        with pytest.raises(Killed):
            erase(writer, CANARIES, now=NOW)
        writer.con = alive
    with patch.object(removal, "_vacuum", side_effect=Killed), pytest.raises(Killed):
        erase(writer, CANARIES, now=NOW)
    left = files_with(tmp_path, CANARY)
    removed = {store.removed for store in erase(writer, CANARIES, now=NOW)}

    assert any("catalog" in name for name in left)
    assert removed == {0}
    assert files_with(tmp_path, CANARY) == []
    assert writer.con.execute("SELECT count(*) FROM turns").fetchall() == [(20,)]
    assert verify(writer.con, prefix=PREFIX, now=NOW).findings == []


def test_records_of_an_erasure_are_not_kept(writer: LakeWriter) -> None:
    """They name whom it is about, and would outlive it; their offsets are accounted for."""
    land_all(writer, {topic: examples(topic) for topic in (TURNS, COMMANDS)})
    kinds = [kind for topic in (TURNS, COMMANDS) for kind in carried_by(topic) if issubclass(kind, FORGETTING)]

    skipped = writer.con.execute(f"SELECT reason, key FROM {RAW}.{SKIPPED}").fetchall()  # noqa: S608

    assert [each for each in skipped if each != ("unnumbered", None)] == [("erased", None)] * len(kinds)
    assert verify(writer.con, prefix=PREFIX, now=NOW + timedelta(days=1)).findings == []


def test_a_reader_keeps_the_catalog_from_forgetting(writer: LakeWriter) -> None:
    """Said so, and called again once it is gone: what it reads cannot be taken out of the write-ahead log."""
    with closing(sqlite3.connect(writer.paths.catalog)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM ducklake_snapshot").fetchall()
        writer.land(buffer_of([turn(0)]), now=NOW)
        busy = vacuum(writer.paths.catalog, patience_s=0.05)

    assert "database is locked" in busy
    assert vacuum(writer.paths.catalog, patience_s=0.05) == ""
