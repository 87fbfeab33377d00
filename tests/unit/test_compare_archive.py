"""The archive as a comparison reads it: whatever a role emits must be looked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from jobs.replay.comparison import read_archive
from models.entities import REGISTRY
from models.events import DeadLetter, Output
from streams.archive.catalog import paths_of
from streams.archive.writer import LakeWriter
from streams.oracle.folded import OUTPUT_TOPICS
from streams.settings import Settings
from tests.lake_records import PREFIX, land_all
from tests.unit.test_lake_erasing import examples


def test_every_output_is_looked_for(tmp_path: Path) -> None:
    """A kind that is left out would be missing in every comparison, or false ones never be found."""
    settings = Settings(data_dir=tmp_path, topic_prefix=PREFIX)
    emitted: dict[Any, list[Any]] = {
        topic: [
            replace(event, id=f"{topic.name} {n}")
            for n, event in enumerate(examples(topic))
            if isinstance(event, Output | DeadLetter)
        ]
        for topic in OUTPUT_TOPICS
        if topic in REGISTRY.archived_topics
    }
    writer = LakeWriter(paths_of(settings))
    land_all(writer, emitted)
    writer.close()

    found = read_archive(settings).ids

    assert {topic.name: {event.id for event in events} for topic, events in emitted.items()} == found
