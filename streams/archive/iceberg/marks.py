"""Progress marks of publishing a table, kept in the summary of the very snapshot that brought it there.

Rows and marks are one commit, so a publisher that dies at any moment neither loses nor doubles. Beside the next
offset stands how many rows the archive had below it: rows are only ever removed there, so fewer of them mean that
something was erased or grew too old, and it does not matter who noted that, or whether.
"""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

import msgspec
from msgspec import Struct
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot, ancestors_of

from models.errors import ConfigurationError

MARKS = "turntide.marks"
REMOVED = "turntide.removed"
"""In the summary of a snapshot after which nothing older may stay."""


class PublishedMark(NamedTuple):
    """How far one partition of the topic is published."""

    next: int
    """The next offset to publish."""
    rows: int
    """How many rows of the archive's table had a lower one, whether or not they are shown."""


class Marks(Struct, frozen=True):
    """How far a table is published."""

    topic: str = ""
    """Full name; empty where nothing has landed yet."""
    partitions: dict[int, PublishedMark] = {}
    emptied_before: date | None = None
    """Rows received on earlier days have no words any more (`streams.archive.retention`)."""

    @property
    def summary(self) -> dict[str, str]:
        """As properties of a snapshot."""
        return {MARKS: msgspec.json.encode(self).decode()}

    def before(self, standing: Marks) -> bool:
        """Whether an archive that stands there can be what was published so far."""
        if not self.partitions:
            return True
        return self.topic == standing.topic and all(
            partition in standing.partitions and mark.next <= standing.partitions[partition].next
            for partition, mark in self.partitions.items()
        )


def marks_of(table: Table) -> Marks:
    """The marks of the latest snapshot of ours; others may have compacted the table since.

    Raises:
        ConfigurationError: None of the table's snapshots is ours.
    """
    current = table.current_snapshot()
    if current is None:
        return Marks()
    found = next((mark for each in ancestors_of(current, table.metadata) if (mark := _property(each, MARKS))), None)
    if found is None:
        raise ConfigurationError(
            f"Iceberg table {'.'.join(table.name())}: no snapshot that is left says how far it is published. Somebody "
            "else wrote it, or expired ours: drop the table, and `turntide archive publish` writes it anew"
        )
    return msgspec.json.decode(found, type=Marks)


def removed(snapshot: Snapshot) -> bool:
    """Whether rows left the table with this snapshot."""
    return _property(snapshot, REMOVED) is not None


def _property(snapshot: Snapshot, name: str) -> str | None:
    return None if snapshot.summary is None else snapshot.summary.additional_properties.get(name)
