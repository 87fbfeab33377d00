"""Location of the Iceberg tables, by the settings; needs no package of them, so that roles can ask."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from streams.settings import Settings

_SQLITE = "sqlite:///"


class IcebergPlace(NamedTuple):
    """Where the tables are published."""

    uri: str
    warehouse: str | None

    @property
    def is_rest(self) -> bool:
        """Whether the catalog is a server."""
        return self.uri.startswith(("http://", "https://"))

    @property
    def file(self) -> Path | None:
        """The catalog's file, where it is one."""
        return Path(self.uri.removeprefix(_SQLITE)) if self.uri.startswith(_SQLITE) else None

    @property
    def shown(self) -> str:
        """The catalog without whom it is opened as.

        >>> IcebergPlace("postgresql://me:secret@host/db", None).shown
        'postgresql://host/db'
        """
        scheme, slashes, rest = self.uri.partition("://")
        return scheme + slashes + rest.rpartition("@")[2]


def place_of(settings: Settings) -> IcebergPlace:
    """Where the settings put the tables: by default `iceberg/` under the data directory."""
    folder = settings.data_dir.absolute() / "iceberg"
    uri = settings.iceberg.uri or f"{_SQLITE}{folder / 'catalog.sqlite'}"
    place = IcebergPlace(uri, settings.iceberg.warehouse)
    return place if place.is_rest or place.warehouse else place._replace(warehouse=f"file://{folder / 'warehouse'}")


def is_published(settings: Settings) -> bool:
    """Whether Iceberg tables are asked for: a catalog is named, or there is one under the data directory."""
    file = place_of(settings).file
    return settings.iceberg.uri is not None or (file is not None and file.is_file())
