"""Records on their way into one table, as lists beside each other.

Content in the archive where it is encrypted: sealed texts in the same columns, opened again for those with the keys.

Ids, times and figures stay, so folders, statistics of files, filters and joins work as before. A word can be looked for
in what was opened, not in the files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Annotated, Any, cast

import msgspec
import numpy as np
import polars as pl
from msgspec import Struct

from models.errors import ConfigurationError
from models.events import DeadLetter, RiskPoint
from models.events.fields import AppId, EventId, SessionId, UserId, about
from models.retrieval.event_times import TELLING, DayInterval, event_interval
from streams.encryption.keyring import Sealer, key_of_id
from streams.encryption.records import app_of_event, sealed_event
from streams.encryption.tokens import ID_BYTES, MARK, sealed_bytes

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class Landed(Struct, frozen=True, gc=False):
    """One record as the archive keeps it."""

    event: Struct
    partition: int
    offset: int
    appended_at: datetime
    size_bytes: int
    extra: str | None = None
    """JSON of the fields that the schema does not name."""
    content_exact: bytes | None = None
    """UTF-8 of a turn's content, only where the column `content` had to differ (U+0000)."""


class Rows(Struct, gc=False):
    """Many records of one table, `(n_rows,)` each.

    Attributes:
        kinds: Of the events.
        events: The events, or parts of them that have rows of their own.
        owners: Whose part each is; the events themselves where they are whole.
        partitions: Where each record stood …
        offsets: … in its partition.
        appended_us: When the broker received it, microseconds since 1970.
        sizes: Bytes of its value.
        extras: Of the rows that have one, see `Landed`.
        exacts: Likewise.
        told: Of turns: days that each tells of; made when it is asked for first.
    """

    kinds: set[type[Struct]] = set()
    events: list[Struct] = []
    owners: list[Struct] = []
    partitions: list[int] = []
    offsets: list[int] = []
    appended_us: list[int] = []
    sizes: list[int] = []
    extras: dict[int, str] = {}
    exacts: dict[int, bytes] = {}
    told: list[DayInterval | None] = []

    def days_told(self) -> list[DayInterval | None]:
        """Of turns: days that each tells of; None for those whose text is encrypted, as the days are content too."""
        if len(self.told) != len(self):
            turns: list[Any] = self.events
            texts = pl.Series([turn.content for turn in turns], dtype=pl.String)
            may_tell = texts.str.contains(TELLING) | (texts.str.len_bytes() > texts.str.len_chars())
            self.told = [
                event_interval(turn.content, turn.timestamp.date())
                if may and not turn.content.startswith(MARK)
                else None
                for turn, may in zip(turns, may_tell, strict=True)
            ]
        return self.told

    def __len__(self) -> int:
        return len(self.events)

    def append(self, row: Landed) -> None:
        """Take one record."""
        if row.extra is not None:
            self.extras[len(self)] = row.extra
        if row.content_exact is not None:
            self.exacts[len(self)] = row.content_exact
        appended_us = (row.appended_at - EPOCH) // MICROSECOND
        self.extend([row.event], [row.partition], [row.offset], [appended_us], [row.size_bytes])

    def extend(
        self,
        events: Sequence[Struct],
        partitions: Sequence[int],
        offsets: Sequence[int],
        appended_us: Sequence[int],
        sizes: Sequence[int],
        *,
        owners: Sequence[Struct] | None = None,
    ) -> None:
        """Take many, none of which has fields that the schema does not name."""
        self.kinds.update(map(type, events))
        self.events.extend(events)
        self.owners.extend(events if owners is None else owners)
        self.partitions.extend(partitions)
        self.offsets.extend(offsets)
        self.appended_us.extend(appended_us)
        self.sizes.extend(sizes)

    def only(self, wanted: Sequence[int]) -> Rows:
        """Those at these numbers."""
        chosen = Rows()
        chosen.extend(
            [self.events[row] for row in wanted],
            *([each[row] for row in wanted] for each in (self.partitions, self.offsets, self.appended_us, self.sizes)),
            owners=[self.owners[row] for row in wanted],
        )
        chosen.extras = {n: self.extras[row] for n, row in enumerate(wanted) if row in self.extras}
        chosen.exacts = {n: self.exacts[row] for n, row in enumerate(wanted) if row in self.exacts}
        return chosen

    def join(self, rows: Rows) -> None:
        """Take those of another."""
        known = len(self)
        self.extras.update({known + row: extra for row, extra in rows.extras.items()})
        self.exacts.update({known + row: exact for row, exact in rows.exacts.items()})
        self.extend(rows.events, rows.partitions, rows.offsets, rows.appended_us, rows.sizes, owners=rows.owners)


class RiskPointOfSession(RiskPoint, frozen=True, kw_only=True, gc=False):
    """One element of `ProfileUpdated.risk_points` with its session and the profile that brought it."""

    id: Annotated[EventId, about("Id of the profile that brought it.")]
    session_id: SessionId
    user_id: UserId
    app_id: AppId


OF_PROFILE = frozenset(("id", "session_id", "user_id", "app_id"))
"""What a point has of the profile that brought it."""


def risk_points(profiles: Rows) -> Rows:
    """The risk points of profiles as rows of their own, which the profiles own."""
    points, counts = Rows(), [len(profile.risk_points) for profile in profiles.events]  # type: ignore[attr-defined]
    whose = np.repeat(np.arange(len(counts)), counts).tolist()
    points.extend(
        list(chain.from_iterable(profile.risk_points for profile in profiles.events)),  # type: ignore[attr-defined]
        [profiles.partitions[row] for row in whose],
        [profiles.offsets[row] for row in whose],
        [profiles.appended_us[row] for row in whose],
        [0] * len(whose),
        owners=[profiles.events[row] for row in whose],
    )
    return points


ERASED = "[erased]"
"""What is read where the key was erased."""
_TOKEN = re.compile(rf"{re.escape(MARK)}[\w-]+", re.ASCII)


def seal_rows(topic: str, tables: Mapping[str, Rows], sealer: Sealer) -> None:
    """Seal the content of rows that came of a topic's records; a repeat gives the same. Refused records lose it."""
    for rows in tables.values():
        for n, event in enumerate(rows.events):
            if (key := sealer.key(app_of_event(event))) is None:
                continue
            salt = key.salt(f"{topic}/{rows.partitions[n]}/{rows.offsets[n]}".encode())

            def seal(text: str, key: Any = key, salt: bytes = salt) -> str:
                return cast("str", key.seal_text(text, salt))

            if isinstance(event, DeadLetter):  # what is sealed no erasure would find by the names in it
                event = msgspec.structs.replace(event, key=None, value=None, headers=[])  # noqa: PLW2901
            rows.events[n] = rows.owners[n] = sealed_event(event, seal)
            if (extra := rows.extras.get(n)) is not None:
                rows.extras[n] = seal(extra)
            if (exact := rows.exacts.get(n)) is not None:
                rows.exacts[n] = seal(exact.decode()).encode()


def opened_value(value: Any) -> Any:
    """A value of a column, or a row, with its texts as they were written; where a key is missing, as they are kept."""
    if isinstance(value, str):
        return _opened_text(value) if MARK in value else value
    if isinstance(value, bytes):
        return _opened_text(value.decode()).encode() if value.startswith(MARK.encode()) else value
    if isinstance(value, list | tuple):
        return type(value)(map(opened_value, value))
    if isinstance(value, dict):
        return {opened_value(name): opened_value(each) for name, each in value.items()}
    return value


def opened_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows whose text columns are opened."""
    texts = [column for column in frame.iter_columns() if column.dtype == pl.String]
    sealed = [column for column in texts if column.str.contains(MARK, literal=True).any()]
    return frame.with_columns([pl.Series(each.name, list(map(opened_value, each)), pl.String) for each in sealed])


def _opened_text(text: str) -> str:
    """Every sealed text in a text, which may be JSON."""
    is_json = text[:1] in "{["

    def plain(found: re.Match[str]) -> str:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - extra `encryption`

        try:
            sealed = sealed_bytes(found[0])
            key = key_of_id(sealed[:ID_BYTES])
            said = ERASED if key is None else key.opened_text(sealed)
        except (ValueError, InvalidTag, ConfigurationError):
            return found[0]  # somebody may have typed it, so no reader ends here
        return msgspec.json.encode(said).decode()[1:-1] if is_json else said

    return _TOKEN.sub(plain, text)
