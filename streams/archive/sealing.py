"""Content in the archive where it is encrypted: sealed texts in the same columns, opened again for those with the keys.

Ids, times and figures stay, so folders, statistics of files, filters and joins work as before. A word can be looked for
in what was opened, not in the files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec
import polars as pl

from models.errors import ConfigurationError
from models.events import DeadLetter
from streams.archive.rows import Rows
from streams.encryption.keyring import Sealer, key_of_id
from streams.encryption.records import app_of_event, sealed_event
from streams.encryption.tokens import ID_BYTES, MARK, sealed_bytes

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
