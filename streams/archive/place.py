"""Location of an archive, by the settings."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from streams.archive.postgres import Postgres, postgres_of
from streams.archive.storage import S3, S3Access, s3_access_of
from streams.settings import Settings

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
