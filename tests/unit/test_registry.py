"""What follows from the kinds of entity: topics, keys, counters, tables and the index's collections."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from models.entities import KINDS, OTHERS, REGISTRY, TOPIC_OF, entity_key
from models.events.base import Output, Position
from models.events.registry import Emits, EntityKind, Registry, count
from models.events.topics import COMMANDS, FACTS
from models.events.user import UserCommand
from models.metrics import METRIC_OF
from models.partition.commands import FOLDS
from models.wire.envelope import schema_of
from streams.archive.schema import TABLES
from streams.archive.views.definitions import VIEW_NAMES

EXAMPLES = Path(__file__).parents[2] / "deploy" / "contracts" / "examples"
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Greeted(UserCommand, frozen=True, kw_only=True, tag="greeted", gc=False):
    """Somebody said hello."""


class GreetingsCounted(Output, frozen=True, kw_only=True, tag="greetings_counted"):
    """How often a user did."""

    times: int


GREETINGS = EntityKind(
    name="greetings",
    key=lambda event: f"greetings:{event.user_id}",
    source=COMMANDS,
    accepts=(Greeted,),
    erased_by=(),
    emits=(Emits(GreetingsCounted, FACTS, slot=lambda _: "/times", counts=(count("greetings", "times"),)),),
)


def test_another_kind_is_found_everywhere() -> None:
    """On its topics, behind those that were there, by its key, and in its counter."""
    registry = Registry((*KINDS, GREETINGS), OTHERS, REGISTRY.topics)
    said: Any = {"app_id": "a", "user_id": "u", "timestamp": AT}
    emitted = GreetingsCounted(id="i", session_id="", source=Position("t", 0, 0), times=2, **said)

    assert (*REGISTRY.carried_by(FACTS), GreetingsCounted) == registry.carried_by(FACTS)
    assert set(registry.carried_by(COMMANDS)) - set(REGISTRY.carried_by(COMMANDS)) == {Greeted}
    assert (registry.topic_of[Greeted], registry.topic_of[GreetingsCounted]) == (COMMANDS, FACTS)
    assert registry.kind_of[Greeted].key(Greeted(**said)) == "greetings:u"
    assert [("greetings", 1, {"times": "2"})] == registry.counted(emitted)
    assert Greeted not in TOPIC_OF


def test_what_is_named_is_there() -> None:
    """Counters with their labels, tables and views of the archive, folds; each topic of an event is its own."""
    emitted = REGISTRY.emits.values()
    examples = [
        msgspec.json.decode((EXAMPLES / f"{schema_of(each.event)}.json").read_bytes(), type=each.event)
        for each in emitted
        if each.counts
    ]
    counted = [found for event in examples for found in REGISTRY.counted(event)]

    assert len(counted) >= len(examples) - 2  # some count on certain occasions only
    assert [each for each in counted if set(METRIC_OF[each.metric].labels) != set(each.labels)] == []
    assert {each.table for each in emitted if each.table} <= set(TABLES)
    assert {view for each in emitted for view in each.views} <= set(VIEW_NAMES)
    assert {kind.name for kind in KINDS} - {"session"} == set(FOLDS)
    assert [each for each in emitted if TOPIC_OF[each.event] is not each.topic] == []


def test_an_event_is_of_the_entity_that_it_changes() -> None:
    """Of what one kind emits and another takes in, the key is that of the other."""
    turn: Any = {"id": "i", "session_id": "s", "user_id": "u", "app_id": "a", "timestamp": AT}
    forwarded = REGISTRY.carried_by(COMMANDS)[0]

    event = forwarded(**turn, source=Position("t", 0, 0), turn=1, role="user", content="")

    assert entity_key(event) == "user:a/u"
