"""Locations of the archive, its files on S3 and the Iceberg tables, by the settings; needs no package of theirs."""

from pathlib import Path
from typing import NamedTuple

from models.errors import ConfigurationError
from streams.archive.extensions import literal
from streams.archive.postgres import Postgres, postgres_of
from streams.settings import Settings
from streams.settings.archive import ArchiveSettings

S3, _SQLITE = "s3://", "sqlite:///"
_SECRET = "turntide_files"  # noqa: S105 - its name, not its value


def s3_secret(archive: ArchiveSettings, data: str) -> str:
    """Statement that makes a bucket's keys known to a connection, for paths below `data` alone; DuckDB redacts them."""
    hidden = {"SECRET": archive.s3_secret, "SESSION_TOKEN": archive.s3_session_token}
    texts = {
        "SCOPE": data,
        "URL_STYLE": archive.s3_url_style,
        "ENDPOINT": archive.s3_endpoint,
        "REGION": archive.s3_region,
        "KEY_ID": archive.s3_key_id,
        **{name: None if value is None else value.get_secret_value() for name, value in hidden.items()},
    }
    terms = [f"{name} {literal(text)}" for name, text in texts.items() if text is not None]
    return f"CREATE OR REPLACE SECRET {_SECRET} (TYPE s3, {', '.join(terms)}, USE_SSL {str(archive.s3_tls).lower()})"


LAKE = "lake"
"""Name under which every connection of ours attaches the catalog."""
METADATA = f"__ducklake_metadata_{LAKE}"
"""DuckDB's name for the database behind it."""


class LakePaths(NamedTuple):
    """Where an archive lives."""

    catalog: Path
    """SQLite file of the catalog; not used where that is in Postgres."""
    data: str
    """Folder of the Parquet files, or their prefix on S3; ends with a slash."""
    postgres: Postgres | None = None
    """Where the catalog is instead."""
    s3: ArchiveSettings = ArchiveSettings()
    """How a bucket is reached."""

    @property
    def lock(self) -> Path:
        """Whoever writes holds it; where the catalog is in Postgres, the lock is there too."""
        return self.catalog.with_name(self.catalog.name + ".lock")

    @property
    def shown(self) -> str:
        """The catalog, for messages."""
        return str(self.catalog) if self.postgres is None else self.postgres.shown

    @property
    def is_folder(self) -> bool:
        """Whether the files are in a folder of this machine."""
        return not self.data.startswith(S3)


def paths_of(settings: Settings) -> LakePaths:
    """Where the settings put the archive: by default `archive/` under the data directory.

    Raises:
        ConfigurationError: Half of a pair of keys is missing.
    """
    folder, archive = settings.data_dir / "archive", settings.archive
    if (archive.s3_key_id is None) != (archive.s3_secret is None):
        raise ConfigurationError("archive.s3_key_id and archive.s3_secret need each other: set both or none")
    remote = archive.catalog is not None and "://" in archive.catalog
    return LakePaths(
        catalog=Path(archive.catalog) if archive.catalog and not remote else folder / "catalog.sqlite",
        data=(archive.data_path or str(folder / "data")).rstrip("/") + "/",
        postgres=postgres_of(archive.catalog, archive.catalog_password) if archive.catalog and remote else None,
        s3=archive,
    )


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
