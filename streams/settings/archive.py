"""Settings of the archive (where its catalog and files are, when it lands and merges) and of its Iceberg tables."""

from datetime import timedelta
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, SecretStr, field_validator


class ArchiveSettings(BaseModel):
    """The Parquet archive and its DuckLake catalog."""

    catalog: str | None = Field(
        None, description="DuckLake catalog: a file or postgresql://user@host:port/db. Default: in the data directory."
    )
    catalog_password: SecretStr | None = Field(None, description="Password of a catalog in Postgres.")
    data_path: str | None = Field(
        None, description="Folder of the Parquet files or s3://bucket/prefix/. Default: in the data directory."
    )
    s3_endpoint: str | None = Field(None, description="host[:port] of an S3 server. Default: AWS.")
    s3_region: str | None = Field(None, description="Region of the bucket.")
    s3_key_id: str | None = Field(None, description="Access key id; none: requests are not signed.")
    s3_secret: SecretStr | None = Field(None, description="Secret access key.")
    s3_session_token: SecretStr | None = Field(None, description="Token of temporary keys.")
    s3_url_style: Literal["vhost", "path"] = Field("vhost", description="`path` for most servers that are not AWS.")
    s3_tls: bool = Field(True, description="Whether S3 uses TLS.")
    flush_rows: int = Field(50_000, ge=1, description="Rows land after this many in memory …")
    flush_bytes: int = Field(32 * 1024 * 1024, ge=1, description="… or this many bytes …")
    flush_age: timedelta = Field(timedelta(seconds=9), description="… or when the oldest is this old.")
    merge_every: timedelta = Field(timedelta(minutes=2), description="Interval at which small files are merged.")
    keep_replaced: timedelta = Field(
        timedelta(minutes=30), description="Replaced files and old snapshots stay this long for running readers."
    )

    @field_validator("catalog")
    @classmethod
    def _without_password(cls, catalog: str | None) -> str | None:
        """A password has a field of its own, so that it is nowhere shown."""
        if catalog is not None and "://" in catalog:
            address = urlsplit(catalog)
            if address.scheme not in {"postgresql", "postgres"}:
                raise ValueError("must be a file, or postgresql://user@host:port/db")
            if address.password is not None or "password=" in address.query:
                raise ValueError("has a password: move it to archive.catalog_password")
        return catalog

    @field_validator("data_path")
    @classmethod
    def _known_storage(cls, data_path: str | None) -> str | None:
        """Other stores would fail much later, and less clearly."""
        if data_path is not None and "://" in data_path and not data_path.startswith("s3://"):
            raise ValueError("must be a folder, or s3://bucket/prefix/")
        return data_path


class IcebergSettings(BaseModel):
    """Iceberg catalog to which `turntide archive publish` writes the archive."""

    uri: str | None = Field(
        None,
        description="Catalog: a REST one (http…), or a database in SQLAlchemy's form (sqlite:///…, postgresql…). "
        "Default: an SQLite file in `iceberg/` of the data directory.",
    )
    warehouse: str | None = Field(
        None,
        description="Place of the tables' files: a folder, s3://…, or a REST catalog's name of it. Default: "
        "`iceberg/` in the data directory, or the REST catalog's own choice.",
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
        description="Old snapshots stay this long for running readers; an erasure removes them at once.",
    )
    file_bytes: int = Field(
        128 * 1024 * 1024,
        ge=1024,
        description="Size of rows in memory for one file; the Parquet file has about a fifth of it.",
    )
    small_file_bytes: int = Field(4 * 1024 * 1024, ge=0, description="A Parquet file below this size is small …")
    small_files_per_day: int = Field(
        32, ge=1, description="… and a day of a table with more small files than this is rewritten in large ones."
    )
