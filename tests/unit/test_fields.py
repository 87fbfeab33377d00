"""Every field of every event says what it means; what follows from the kinds of entity knows them all."""

import re
from pathlib import Path
from typing import Annotated

import msgspec
import pytest
from msgspec import Struct

from models.entities import KINDS, REGISTRY, TOPIC_OF
from models.events import fields
from models.metrics import METRIC_OF
from models.partition.commands import FOLDS
from models.wire.envelope import schema_of
from streams.archive.schema import RETAINED, SKIPPED, TABLES, ddl, meanings
from streams.archive.views.definitions import VIEW_NAMES

PARTS = sorted(fields.parts_of(*TOPIC_OF), key=lambda part: part.__name__)
_NAMES_SOMEBODY = re.compile(r"^(session|user|app|project|topic|alert|memory|item|request|conversation)_ids?$")


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_every_field_says_what_it_means(part: type[Struct]) -> None:
    """A sentence, and a class; ids say whose name they are. The numbers of a release are no part of it."""
    said = fields.meaning_of(part)

    assert list(part.__struct_fields__) == list(said)
    assert [] == [field for field, meaning in said.items() if not re.match(r"^[A-Z0-9`].*\.$", meaning.description)]
    assert [] == [field for field, meaning in said.items() if "seed" in meaning.description]
    # An erasure finds somebody by these.
    assert [] == [field for field, meaning in said.items() if _NAMES_SOMEBODY.match(field) and not meaning.names]
    assert [] == [
        field
        for field, meaning in said.items()
        if meaning.names and meaning.privacy in {fields.CONTENT, fields.BEHAVIOUR}
    ]


def test_a_field_without_a_meaning_is_found() -> None:
    """By its struct and its name, also where only the class is missing."""

    class Odd(Struct):
        told: fields.SessionId
        bare: int
        half: Annotated[int, fields.about("How many.")]

    with pytest.raises(TypeError, match=r"Odd: bare, half want `about"):
        fields.meaning_of(Odd)


def test_every_column_of_the_archive_says_what_it_means() -> None:
    """Of the tables that keep the log, and of the two that say what is kept no longer."""
    assert {name: list(ddl()[name]) for name in (*TABLES, SKIPPED, RETAINED)} == {
        name: list(columns) for name, columns in meanings().items()
    }


@pytest.mark.parametrize(
    ("table", "column", "expected"),
    [
        ("user_episodes", "turns", fields.IDENTIFIER),
        ("alerts", "evidence", fields.IDENTIFIER),
        ("alerts", "signals", fields.BEHAVIOUR),
        ("project_items", "pending", fields.CONTENT),
        ("projects", "pending", fields.BEHAVIOUR),
        ("controls", "reason", fields.CONTENT),
        ("episodes", "reason", fields.BEHAVIOUR),
        ("controls", "value", fields.BEHAVIOUR),
        ("dead_letters", "value", fields.CONTENT),
        ("turns", "content_exact", fields.CONTENT),
        ("turns", "app", fields.OPERATIONAL),
    ],
)
def test_a_column_is_as_private_as_its_field(table: str, column: str, expected: fields.Privacy) -> None:
    """A structure that names somebody is an identifier, numbers under a name of words are none; words stay words."""
    assert expected is meanings()[table][column].privacy


EXAMPLES = Path(__file__).parents[2] / "deploy" / "contracts" / "examples"


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
