"""Topics in the archive: each change once, the latest of each, what compactions cost, and which turn is of which."""

from __future__ import annotations

from typing import Any

from models.events import FeedbackGiven, TopicAdjusted, TopicChanged, TopicRestored, TopicSummarised
from models.events.topics import CONVERSATION_TOPICS, TURNS
from models.wire.codec import encode
from streams.archive.inputs import archived_inputs
from streams.archive.writer import LakeWriter
from tests.support.lake_records import NOW, PREFIX, buffer_of, example, lineage, topic, turn


def ask(writer: LakeWriter, sql: str) -> list[Any]:
    """Rows of a query."""
    return writer.con.execute(sql).fetchall()


def keep(writer: LakeWriter, *changes: TopicChanged) -> None:
    """Land changes of topics."""
    writer.land(buffer_of(changes, topic=CONVERSATION_TOPICS), now=NOW)


def test_compactions_have_their_lineage(writer: LakeWriter) -> None:
    """One row each, with what went in and what it cost."""
    keep(writer, topic("e1"), topic("e2", cause="compacted", packed_turns=[0, 1], compaction=lineage(0, 1)))

    assert ask(writer, "SELECT id, topic_id, turns, bytes_after, ratio, loss, codec FROM topic_compactions") == [
        ("e2", "t-1", [0, 1], 300, 0.3, 0.25, "gzip")
    ]


def test_the_last_naming_of_a_turn_wins(writer: LakeWriter) -> None:
    """Turns of a topic that merged into another are of that one, those released earlier stay where they were named."""
    keep(
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
    keep(
        writer,
        topic("e1", "t-1", at_offset=0, active_turns=[0]),
        topic("e2", "t-1", at_offset=3, cause="left", active=False, active_turns=[0, 1]),
        topic("e3", "t-2", at_offset=3, active_turns=[2]),
    )

    named = dict(ask(writer, "SELECT turn, topic_id FROM topic_turns"))
    assert {0: "t-1", 1: "t-1", 2: "t-2", 3: "t-2", 4: "t-2"} == named


def test_controls_of_topics_come_back_from_the_archive(writer: LakeWriter) -> None:
    """A replay of the archive folds what the log had, restored messages and times among it."""
    sent = [example(kind) for kind in (TopicAdjusted, FeedbackGiven, TopicSummarised, TopicRestored)]
    writer.land(buffer_of(sent), now=NOW)

    found = [record.value for record in archived_inputs(writer.con, TURNS.full_name(PREFIX))]

    assert found == [encode(event) for event in sent]
