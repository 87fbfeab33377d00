"""Traffic of a back-test or a calibration: the archive, a labelled file or the live topic, as a log of turns."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from aiokafka import TopicPartition
from aiokafka.structs import ConsumerRecord
from msgspec import Struct

from jobs.shared.dialogues import BETWEEN_TURNS, LabelledDialogue, read_dialogues, turns_of_dialogue
from jobs.shared.output import Progress, progress_bar
from models.errors import ConfigurationError
from models.events import AlertLabelled, InputEvent, SessionEnded
from models.events.topics import TURNS
from streams.kafka.client import consumer, require_topic
from streams.kafka.records import record_of_input
from streams.settings import Settings

BEGINS = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
"""Event time of the first labelled turn: a fixed one, so that the same file gives the same figures."""
_POLL_MS = 500


class LabelledTraffic(Struct, frozen=True):
    """Records of `turns.v1`, with labels among them.

    Attributes:
        name: What it is, for people.
        records: By partition and offset.
        count: How many records there are.
        timed: Whether event times are those of the conversations; else there is no rate by day.
    """

    name: str
    records: Iterable[ConsumerRecord]
    count: int
    timed: bool


Opening = Callable[[], AbstractContextManager[LabelledTraffic]]
"""Opens the same traffic again: it is read once for each judgement of it."""


def traffic_of(settings: Settings, data: Path | None) -> Opening:
    """The labelled file, or the archive where none is named.

    What is opened raises `ConfigurationError` where the file cannot be used, or the archive is missing or empty.
    """
    topic = TURNS.full_name(settings.topic_prefix)
    if data is None:
        return lambda: _archived(settings, topic)
    return lambda: nullcontext(labelled_traffic(data.name, read_dialogues(data), topic))


def labelled_traffic(name: str, dialogues: Sequence[LabelledDialogue], topic: str = TURNS.name) -> LabelledTraffic:
    """Labelled dialogues as the log they would have been: the records of one partition, one after another.

    A dialogue's source is its app, and its session its user's only one. Turns are a minute apart, further than turns
    that a policy merges. The label follows the last of them as somebody would have given it, and the session ends
    before the next begins: so none times out or is evicted because others are in the file.
    """
    count = sum(len(dialogue.turns) + 2 for dialogue in dialogues)
    return LabelledTraffic(name, _as_log(dialogues, topic), count, timed=False)


def _as_log(dialogues: Sequence[LabelledDialogue], topic: str) -> Iterator[ConsumerRecord]:
    offset, now = 0, BEGINS
    for dialogue in dialogues:
        turns = turns_of_dialogue(dialogue, now, dialogue.numbers)
        said = turns[-1].timestamp + BETWEEN_TURNS
        name: dict[str, Any] = {"session_id": dialogue.session_id, "app_id": turns[-1].app_id, "timestamp": said}
        label = AlertLabelled(**name, alert_id="", escalating=dialogue.escalating)
        events: list[InputEvent] = [*turns, label, SessionEnded(**name)]
        for event in events:
            yield record_of_input(event, topic, offset=offset, at_ms=round(event.timestamp.timestamp() * 1000))
            offset += 1
        now = said + BETWEEN_TURNS


@contextmanager
def _archived(settings: Settings, topic: str) -> Iterator[LabelledTraffic]:
    from streams.archive.catalog import paths_of, reading
    from streams.archive.inputs import archived_count, archived_inputs

    with reading(paths_of(settings)) as lake:
        count = archived_count(lake)
        if not count:
            raise ConfigurationError(
                "the archive holds no turn yet: let the archive role run, or name a file by --data"
            )
        yield LabelledTraffic("archive", archived_inputs(lake, topic), count, timed=True)


def watched(settings: Settings, seconds: float) -> Opening:
    """Read the live topic for some time, and give what came as traffic. Ctrl-C ends it without a result.

    Raises:
        ConfigurationError: There is no such topic, or nothing was said.
        StoreUnavailable: Kafka does not answer.
    """
    with progress_bar("watching, seconds") as progress:
        records = asyncio.run(_read(settings, seconds, progress))
    if not records:
        raise ConfigurationError(f"nothing came in {seconds:g} s: is anybody producing to {TURNS.name}?")
    records.sort(key=lambda record: (record.partition, record.offset))
    return lambda: nullcontext(LabelledTraffic(f"{seconds:g} s of live traffic", records, len(records), timed=True))


async def _read(settings: Settings, seconds: float, progress: Progress) -> list[ConsumerRecord]:
    topic = TURNS.full_name(settings.topic_prefix)
    partitions = [TopicPartition(topic, number) for number in await require_topic(settings.kafka, topic)]
    records: list[ConsumerRecord] = []
    async with consumer(settings.kafka) as client:
        client.assign(partitions)
        for partition, end in (await client.end_offsets(partitions)).items():
            client.seek(partition, end)
        began = monotonic()
        while (passed := monotonic() - began) < seconds:
            left_ms = max(1, round((seconds - passed) * 1000))
            for batch in (await client.getmany(timeout_ms=min(_POLL_MS, left_ms))).values():
                records += batch
            progress(round(monotonic() - began), round(seconds))
    return records


def in_utc(time: datetime | None) -> datetime | None:
    """A time of the command line, which has no zone, as UTC."""
    return None if time is None else time.replace(tzinfo=UTC)


def require_folder(file: Path) -> None:
    """Say before hours of folding that a result could not be written.

    Raises:
        ConfigurationError: The file's folder does not exist.
    """
    if not file.parent.is_dir():
        raise ConfigurationError(f"cannot write {file}: there is no folder {file.parent}")
