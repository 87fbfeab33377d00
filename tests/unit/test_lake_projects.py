"""Projects and topics in the archive: what is there now, what was known before, and whose rows an erasure takes."""

from datetime import timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from models import events
from models.entities import carried_by
from models.events import TopicChanged
from models.events.topics import COMMANDS, CONVERSATION_TOPICS, MEMORY_EVENTS, PROJECTS, Topic
from models.wire.codec import encode
from streams.archive.erasing import erase
from streams.archive.writer import LakeWriter
from tests.support.lake_records import NOW, buffer_of, example, land_all, lineage, topic, turn
from tests.unit import test_erasure_projects as said
from tests.unit.test_lake_erasing import SUBJECTS, of_another, rows_of, ruled


def ask(writer: LakeWriter, sql: str) -> list[Any]:
    """Rows of a query."""
    return writer.con.execute(sql).fetchall()


def keep(writer: LakeWriter, *changes: Struct, topic: Topic = PROJECTS) -> None:
    """Land events of a topic."""
    land_all(writer, {topic: changes})


IMPORT: Any = said.IMPORT
ITEM: Any = said.ITEM
KINDS = [
    ITEM,
    said.of_kind("episode", IMPORT.episodes[0]),
    said.of_kind("chunk", IMPORT.chunks[0]),
    said.of_kind("conversation", IMPORT.conversations[0]),
    said.of_kind("pending", IMPORT.pending[0]),
]


def test_each_kind_has_a_view_of_its_fields(writer: LakeWriter) -> None:
    """Analysts ask for columns, not for structs; the views take up a field that is added later."""
    keep(writer, *KINDS)
    views = ("project_memories", "project_episodes", "project_chunks", "project_conversations", "project_pending")

    fields = [set(getattr(item, item.kind).__struct_fields__) for item in KINDS]
    found = [[column for column, *_ in ask(writer, f"DESCRIBE {view}")] for view in views]
    rows = [ask(writer, f"SELECT id, slot FROM {view}") for view in views]  # noqa: S608

    assert [True] * len(KINDS) == [has >= names for has, names in zip(map(set, found), fields, strict=True)]
    assert [] == [name for columns in found for name in columns if columns.count(name) > 1]
    assert rows == [[(getattr(item, item.kind).id, item.slot)] for item in KINDS]


def test_what_is_there_now(writer: LakeWriter) -> None:
    """The last of each place: replaced and gone ones are in the changes only, a repeat is seen once."""
    created = replace(ITEM, id="1", cause="created")
    edited = replace(ITEM, id="2", memory=replace(ITEM.memory, content="Green, after all."))
    other = replace(ITEM, id="3", slot=3, item_id="a-0", memory=replace(ITEM.memory, id="a-0"))
    gone = replace(other, id="4", active=False, memory=None, cause="deleted")
    keep(writer, created, edited, other, gone, edited)

    assert ask(writer, "SELECT slot, content FROM project_memories") == [(2, "Green, after all.")]
    assert ask(writer, "SELECT id FROM project_changes ORDER BY id") == [("1",), ("2",), ("3",), ("4",)]


def test_what_was_known_when(writer: LakeWriter) -> None:
    """Two axes of time: a question names both, and finds what was known then of what held then."""
    began = ITEM.memory.valid_from
    before = events.MemoryRevision(
        recorded_at=began, content="The blue lamp.", importance=0.7, valid_from=began, valid_until=None
    )
    learnt = replace(
        ITEM.memory,
        content="The blue lamp, until March.",
        recorded_at=began + timedelta(days=9),
        valid_until=began + timedelta(days=5),
        history=[before],
    )
    keep(writer, replace(ITEM, memory=learnt))
    known_then = (
        "SELECT content FROM project_memory_history "
        "WHERE recorded_at <= $known AND coalesce($known < known_until, true) "
        "AND valid_from <= $at AND coalesce($at < valid_until, true)"
    )

    def found(at_days: int, known_days: int) -> list[Any]:
        when = {"at": began + timedelta(days=at_days), "known": began + timedelta(days=known_days)}
        return writer.con.execute(known_then, when).fetchall()

    assert [found(3, 7), found(7, 7), found(3, 10), found(7, 10)] == [
        [("The blue lamp.",)],
        [("The blue lamp.",)],
        [("The blue lamp, until March.",)],
        [],
    ]


def test_no_text_of_commands_is_kept(writer: LakeWriter) -> None:
    """What people write or import is in the items that come of it, where an erasure finds it by its sources."""
    added = replace(example(events.ProjectMemoryAdded), content="xylocarp", subject="xylocarp", tags=["xylocarp"])
    ended = replace(example(events.ConversationStatusSet), summary="xylocarp")
    imported = replace(IMPORT, memories=[replace(ITEM.memory, content="xylocarp")])
    keep(writer, added, ended, imported, topic=COMMANDS)
    rows = ask(writer, "SELECT * FROM project_commands")

    assert len(rows) == 3
    assert "xylocarp" not in str(rows)
    assert ask(writer, "SELECT type FROM project_commands WHERE list_contains(mentioned_sessions, 'order-4711')") == [
        ("conversation_status_set",),
        ("project_imported",),
    ]


def in_a_project() -> dict[Topic, list[Struct]]:
    """What is of the examples' session in a project, what others said too, and what tells of either."""

    def edited(item_id: str, **fields: Any) -> Any:
        return replace(example(events.ProjectMemoryEdited), memory_id=item_id, **fields)

    shared = replace(said.SHARED, item_id="a-1")
    changes = [
        said.MINE,
        said.GONE,
        shared,
        replace(said.OTHERS_OWN, item_id="a-1"),
        *(replace(change, item_id=f"b-{n}") for n, change in enumerate(said.TIED) if isinstance(change, type(shared))),
    ]
    told = [event for event in said.TIED if not isinstance(event, type(shared))]
    return {
        PROJECTS: [*changes, *map(of_another, changes)],
        COMMANDS: [
            *(event for event in told if type(event) in carried_by(COMMANDS)),
            edited(said.ID, project_id="another"),
            edited("a-1"),
        ],
        MEMORY_EVENTS: [event for event in told if type(event) in carried_by(MEMORY_EVENTS)],
    }


def test_what_several_said_in_a_project(writer: LakeWriter) -> None:
    """Rows that name the session go, also of what others said; what tells of an item, only if it was the session's."""
    landed = in_a_project()
    land_all(writer, landed)

    found = [rows_of(writer, subject) for subject in SUBJECTS]
    items = {offset for table, offset in found[0] if table == "project_items"}
    commands = {offset for table, offset in found[0] if table == "project_commands"}

    assert [ruled(subject, landed) for subject in SUBJECTS] == found
    assert items >= {0, 1, 2}
    assert 3 not in items
    *telling, _of_another_project = [n for n, event in enumerate(landed[COMMANDS]) if said.ID.encode() in encode(event)]
    assert commands == set(telling)


def test_an_erasure_leaves_what_others_said(writer: LakeWriter) -> None:
    """The fold tells a shared memory anew without the session: that stands, and nothing older comes back."""
    gone = replace(said.GONE, id="2", slot=5)
    shared, anew = (replace(item, id=f"{n}", item_id="a-1") for n, item in enumerate((said.SHARED, said.OTHERS_OWN), 3))
    keep(writer, replace(said.MINE, id="1", slot=5), shared, gone, anew)

    erase(writer, SUBJECTS[0], now=NOW)

    assert ask(writer, "SELECT id FROM project_changes") == [("4",)]
    assert ask(writer, "SELECT len(sources) FROM project_memories") == [(1,)]


def keep_topics(writer: LakeWriter, *changes: TopicChanged) -> None:
    """Land changes of topics."""
    writer.land(buffer_of(changes, topic=CONVERSATION_TOPICS), now=NOW)


def test_the_last_naming_of_a_turn_wins(writer: LakeWriter) -> None:
    """Turns of a topic that merged into another are of that one, those released earlier stay where they were named."""
    keep_topics(
        writer,
        topic("e1", "t-1", cause="compacted", active_turns=[2], compaction=lineage(0, 1, released=(0, 1))),
        topic("e2", "t-2", active_turns=[3]),
        topic("e3", "t-1", cause="merged", active_turns=[2], kept=False, active=False),
        topic("e4", "t-2", cause="merged", active_turns=[2, 3]),
    )

    assert {0: "t-1", 1: "t-1", 2: "t-2", 3: "t-2"} == dict(ask(writer, "SELECT turn, topic_id FROM topic_turns"))


def test_turns_that_no_event_names_are_of_the_active_topic(writer: LakeWriter) -> None:
    """They followed its last event; a late turn that was never folded stood before it and is of none."""
    late = turn(99)
    writer.land(buffer_of([turn(0), turn(1), late, turn(2), turn(3), turn(4)]), now=NOW)
    keep_topics(
        writer,
        topic("e1", "t-1", at_offset=0, active_turns=[0]),
        topic("e2", "t-1", at_offset=3, cause="left", active=False, active_turns=[0, 1]),
        topic("e3", "t-2", at_offset=3, active_turns=[2]),
    )

    named = dict(ask(writer, "SELECT turn, topic_id FROM topic_turns"))
    assert {0: "t-1", 1: "t-1", 2: "t-2", 3: "t-2", 4: "t-2"} == named
