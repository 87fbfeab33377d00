"""Traffic of a back-test: the archive, or a labelled file, as the log of turns it was."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from aiokafka.structs import ConsumerRecord
from msgspec import Struct

from jobs.escalation.backtest.labelled import as_log, records_in
from jobs.shared.dialogues import read_dialogues
from models.errors import ConfigurationError
from models.events.topics import TURNS
from streams.settings import Settings


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
    return lambda: _archived(settings) if data is None else _labelled(settings, data)


@contextmanager
def _labelled(settings: Settings, file: Path) -> Iterator[LabelledTraffic]:
    dialogues = read_dialogues(file)
    records = as_log(dialogues, TURNS.full_name(settings.topic_prefix))
    yield LabelledTraffic(file.name, records, records_in(dialogues), timed=False)


@contextmanager
def _archived(settings: Settings) -> Iterator[LabelledTraffic]:
    from streams.archive.catalog import paths_of, reading
    from streams.archive.inputs import archived_count, archived_inputs

    with reading(paths_of(settings)) as lake:
        count = archived_count(lake)
        if not count:
            raise ConfigurationError(
                "the archive holds no turn yet: let the archive role run, or name a file by --data"
            )
        yield LabelledTraffic(
            "archive", archived_inputs(lake, TURNS.full_name(settings.topic_prefix)), count, timed=True
        )


def with_policy_file(settings: Settings, file: Path | None) -> Settings:
    """Settings that name another policy file; None: as they are."""
    return settings if file is None else settings.model_copy(update={"policy_file": file})


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
