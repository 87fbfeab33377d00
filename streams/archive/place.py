"""Locations of the archive, its files on S3 and the Iceberg tables, by the settings; needs no package of theirs."""

from pathlib import Path
from typing import NamedTuple

from pydantic import SecretStr

from models.errors import ConfigurationError
from streams.archive.extensions import literal
from streams.archive.postgres import Postgres, postgres_of
from streams.settings import Settings
from streams.settings.archive import ArchiveSettings

S3, _SQLITE = "s3://", "sqlite:///"
_SECRET = "turntide_files"  # noqa: S105 - its name, not its value


class S3Access(NamedTuple):
    """How a bucket is reached."""

    endpoint: str | None = None
    """`host[:port]`; None: that of AWS."""
    region: str | None = None
    key_id: str | None = None
    secret: SecretStr | None = None
    session_token: SecretStr | None = None
    url_style: str = "vhost"
    tls: bool = True

    def secret_for(self, data: str) -> str:
        """Statement that makes the keys known to a connection, for paths below `data` alone; DuckDB redacts them."""
        texts = {
            "SCOPE": data,
            "URL_STYLE": self.url_style,
            "ENDPOINT": self.endpoint,
            "REGION": self.region,
            "KEY_ID": self.key_id,
            "SECRET": None if self.secret is None else self.secret.get_secret_value(),
            "SESSION_TOKEN": None if self.session_token is None else self.session_token.get_secret_value(),
        }
        terms = [f"{name} {literal(text)}" for name, text in texts.items() if text is not None]
        return f"CREATE OR REPLACE SECRET {_SECRET} (TYPE s3, {', '.join(terms)}, USE_SSL {str(self.tls).lower()})"


def s3_access_of(archive: ArchiveSettings) -> S3Access:
    """How the settings say that the bucket is reached.

    Raises:
        ConfigurationError: A key without its secret, or the other way round.
    """
    if (archive.s3_key_id is None) != (archive.s3_secret is None):
        raise ConfigurationError("archive.s3_key_id and archive.s3_secret belong together: set both, or none")
    return S3Access(**{name: getattr(archive, f"s3_{name}") for name in S3Access._fields})


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
    s3: S3Access = S3Access()

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
    remote = archive.catalog is not None and "://" in archive.catalog
    return LakePaths(
        catalog=Path(archive.catalog) if archive.catalog and not remote else folder / "catalog.sqlite",
        data=(archive.data_path or str(folder / "data")).rstrip("/") + "/",
        postgres=postgres_of(archive.catalog, archive.catalog_password) if archive.catalog and remote else None,
        s3=s3_access_of(archive),
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
