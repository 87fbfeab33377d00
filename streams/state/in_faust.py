"""A state table as Faust's own tools see it: its web views of tables, and its sensors."""

from collections.abc import Iterator, Mapping

import faust

from models.events.topics import Topic
from models.state.entity import HEAD
from streams.state.changelog import Changes
from streams.state.table import StateTable


class TableInFaust(Mapping[str, dict[str, int]]):
    """A worker's entities among its app's tables: read only, recovered and written by the table itself.

    Values are the sizes of an entity's parts, bytes: no view shows what somebody said. A partition's own entity is not
    listed. Reads by this mapping and all writes are counted by the app's sensors; the fold's reads are not, as it
    looks at the state in place.

    Attributes:
        name: The changelog's, without prefix.
        help: What it is.
        changelog_topic: Its topic; Faust neither declares nor reads it.
    """

    is_global = False

    def __init__(self, app: faust.App, table: StateTable, topic: Topic, prefix: str) -> None:
        self.name = topic.name
        self.help = "State of the partitions that this worker owns, by entity and part, in bytes"
        self.changelog_topic = app.topic(topic.full_name(prefix), key_serializer="raw", value_serializer="raw")
        self._table = table
        self._sensors = app.sensors
        # `TableManager.add` would make Faust recover it too.
        app.tables.data[topic.name] = self

    def __getitem__(self, entity: str) -> dict[str, int]:
        self._sensors.on_table_get(self, entity)
        for entities in self._table.owned():
            if entity and (parts := entities.get(entity)):
                return {part: len(value) for part, value in parts.items()}
        raise KeyError(entity)

    def __iter__(self) -> Iterator[str]:
        return (entity for entities in self._table.owned() for entity in entities if entity)

    def __len__(self) -> int:
        return sum(len(entities) - ("" in entities) for entities in self._table.owned())

    def written(self, changes: Changes) -> None:
        """Tell the sensors what was written through."""
        for entity, parts in changes.items():
            if not entity:
                continue
            if parts.get(HEAD, b"") is None:
                self._sensors.on_table_del(self, entity)
            else:
                self._sensors.on_table_set(self, entity, {part: len(value or b"") for part, value in parts.items()})

    async def on_rebalance(self, *_: object) -> None:
        """Faust's manager tells its tables; this one is told by its role."""

    async def stop(self) -> None:
        """Likewise."""
