"""Meaning of each column of each view: as its table says, or as the view adds."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from msgspec import Struct

from jobs.archive.view_meanings import COMPUTED
from models import events
from models.events.fields import Meaning, Privacy, meaning_of
from streams.archive.schema import meanings
from streams.archive.views.definitions import definitions
from streams.archive.views.published import columns_of_views


class ColumnMeaning(NamedTuple):
    """One column of one view."""

    name: str
    type: str
    """As DuckDB spells it."""
    unit: str
    """Empty where it has none: names, words, truth values."""
    meaning: str
    privacy: Privacy


_PARTS: dict[str, tuple[type[Struct], ...]] = {
    "topic_compactions": (events.TopicCompaction,),
    "alert_labels": (events.AlertLabelled, events.AlertChanged, events.Escalation),
    "alerts": (events.Escalation,),
    "project_memories": (events.ProjectMemory,),
    "project_relationships": (events.Relationship,),
    "project_memory_history": (events.MemoryRevision, events.ProjectMemory),
    "project_episodes": (events.ProjectEpisode,),
    "project_chunks": (events.ConversationChunk,),
    "project_conversations": (events.ProjectConversation,),
    "project_pending": (events.PendingFact,),
}
"""Views that take structures apart: their fields come before columns of a table."""
_SOURCE = re.compile(r"\b(raw|v1)\.(\w+)")
_UNIT_OF_TYPE = {
    "TIMESTAMP WITH TIME ZONE": "UTC time",
    "DATE": "UTC day",
    **dict.fromkeys(("BIGINT", "HUGEINT", "INTEGER"), "count"),
}


def columns_of(view: str) -> list[ColumnMeaning]:
    """Every column of a view, in its order.

    Raises:
        KeyError: A column has no meaning: it is neither of a table that the view reads, nor computed and explained.
    """
    known = _known(view)
    return [
        ColumnMeaning(name, kind, _unit(known[name], kind), known[name].description, known[name].privacy)
        for name, kind in columns_of_views()[view].items()
    ]


def _unit(meaning: Meaning, kind: str) -> str:
    """Of a column's numbers: what its field says, else counts and times by their type; ids have none."""
    return meaning.unit or ("" if meaning.names else _UNIT_OF_TYPE.get(kind, ""))


@cache
def _known(view: str) -> dict[str, Meaning]:
    """Every name that a view may have a column of; of tables that have the same the first that it reads."""
    known: dict[str, Meaning] = {}
    for schema, source in _SOURCE.findall(definitions({})[view]):
        known = (meanings().get(source, {}) if schema == "raw" else _known(source)) | known
    for part in reversed(_PARTS.get(view, ())):
        known |= meaning_of(part)
    return known | COMPUTED.get(view, {})
