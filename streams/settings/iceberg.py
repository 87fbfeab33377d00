"""Settings of the Iceberg tables that the archive is published as. Part of `streams.settings`."""

from __future__ import annotations

from datetime import timedelta

from pydantic import BaseModel, Field, SecretStr


class IcebergSettings(BaseModel):
    """Where `turntide archive publish` keeps the archive as Iceberg tables."""

    uri: str | None = Field(
        None,
        description="The catalog: a REST one (http…), or a database in SQLAlchemy's form (sqlite:///…, postgresql…). "
        "None: an SQLite file in `iceberg/` under the data directory.",
    )
    warehouse: str | None = Field(
        None,
        description="Where the tables' files go: a folder, s3://…, or what a REST catalog calls it. None: `iceberg/` "
        "under the data directory, or the REST catalog's own choice.",
    )
    namespace: str = Field("turntide", pattern=r"^[a-z][a-z0-9_]{0,63}$", description="Namespace of the tables.")
    token: SecretStr | None = Field(None, description="Bearer token of a REST catalog.")
    properties: dict[str, SecretStr] = Field(
        {},
        description="Further properties of PyIceberg's catalog and files, as JSON in the environment: s3.endpoint, "
        "s3.access-key-id, s3.secret-access-key, s3.region, credential …",
    )
    keep_snapshots: timedelta = Field(
        timedelta(days=1),
        ge=timedelta(0),
        description="Old snapshots stay this long for running readers; after an erasure they go at once.",
    )
    file_bytes: int = Field(
        128 * 1024 * 1024,
        ge=1024,
        description="Rows are written in files of so many bytes in memory; a Parquet file has about a fifth.",
    )
    small_file_bytes: int = Field(4 * 1024 * 1024, ge=0, description="A Parquet file below this is a small one …")
    small_files_per_day: int = Field(
        32, ge=1, description="… and a day of a table with more small ones than this is written anew, in large ones."
    )
