"""Binaries of others: DuckDB's extensions are signed, Kafka's jars are those that were pinned."""

import hashlib
import shutil
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import duckdb
import pytest

from jobs.operate.broker.jars import KAFKA_VERSION, kafka_jars, pinned
from models.errors import ConfigurationError
from streams.archive import extensions
from streams.archive.extensions import connected, literal
from streams.maven import JarError, jar_name

NAME = "sqlite_scanner"


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel of its own with the real extension, of which this process knows nothing; gives the extension's file."""
    installed = find_spec(f"duckdb_extension_{NAME}")
    assert installed is not None
    real = Path(str(installed.origin)).parent / "extensions"
    monkeypatch.setattr(extensions, "files", lambda _package: tmp_path)
    monkeypatch.setattr(extensions, "_checked", set())
    shutil.copytree(real, tmp_path / "extensions")
    return _file_below(tmp_path / "extensions")


def _file_below(folder: Path) -> Path:
    (found,) = folder.rglob("*.duckdb_extension")
    return found


def _spoil(file: Path) -> None:
    """Change its last bytes, which are the signature."""
    with file.open("r+b") as open_file:
        open_file.seek(-8, 2)
        open_file.write(b"unsigned")


def test_an_extension_with_a_wrong_signature_is_refused(wheel: Path) -> None:
    """The first time, and also where a good one of this name was loaded before."""
    with closing(connected([NAME], {})):
        pass
    _spoil(wheel)

    with pytest.raises(duckdb.IOException, match="signature"):
        connected([NAME], {})


@pytest.mark.usefixtures("wheel")
def test_sql_loads_nothing_unsigned_on_any_connection(tmp_path: Path) -> None:
    """Neither on the one that checked nor on the next, which did not; and no SQL allows it."""
    stranger = tmp_path / "stranger.duckdb_extension"
    shutil.copy(_file_below(tmp_path / "extensions"), stranger)
    _spoil(stranger)

    for _ in range(2):
        with closing(connected([NAME], {})) as con:
            with pytest.raises(duckdb.IOException, match="signature"):
                con.execute(f"LOAD {literal(str(stranger))}")
            with pytest.raises(duckdb.InvalidInputException, match="while database is running"):
                con.execute("SET GLOBAL allow_unsigned_extensions = true")


def test_an_extension_of_another_version_is_told(wheel: Path) -> None:
    """Before DuckDB is asked."""
    wheel.unlink()

    with pytest.raises(ConfigurationError, match="are incompatible"):
        connected([NAME], {})


_CONTENT = {"org.example:one:1.0": b"one", "org.example:two:2.0": b"two"}
_PINS = {coordinate: hashlib.sha256(content).hexdigest() for coordinate, content in _CONTENT.items()}


class Repository:
    """Serves `_CONTENT`, or what is put in its place, and remembers what was asked for."""

    def __init__(self) -> None:
        self.content = dict(_CONTENT)
        self.asked: list[str] = []
        self.failures = 0

    def fetch(self, coordinate: str, folder: Path) -> Path:
        """Write the jar below `folder`; the first `failures` calls leave half of it and fail."""
        self.asked.append(coordinate)
        folder.mkdir(parents=True)
        jar = folder / jar_name(coordinate)
        if self.failures:
            self.failures -= 1
            jar.write_bytes(self.content[coordinate][:1])
            raise OSError("connection reset")
        jar.write_bytes(self.content[coordinate])
        return jar


@pytest.fixture
def repository() -> Repository:
    """Return a repository that serves what is pinned."""
    return Repository()


def test_fetched_once(tmp_path: Path, repository: Repository) -> None:
    """A complete cache asks nobody; only a damaged file is fetched again."""
    first = kafka_jars(tmp_path, pins=_PINS, fetch=repository.fetch)
    second = kafka_jars(tmp_path, pins=_PINS, fetch=repository.fetch)

    assert first == second == [tmp_path / "one-1.0.jar", tmp_path / "two-2.0.jar"]
    assert [jar.read_bytes() for jar in first] == [b"one", b"two"]
    assert sorted(repository.asked) == sorted(_PINS)

    first[0].write_bytes(b"on")
    repository.asked.clear()
    kafka_jars(tmp_path, pins=_PINS, fetch=repository.fetch)

    assert (repository.asked, first[0].read_bytes()) == (["org.example:one:1.0"], b"one")


def test_wrong_checksum_is_refused(tmp_path: Path, repository: Repository) -> None:
    """A jar that is not the pinned one is neither used nor kept."""
    repository.content["org.example:two:2.0"] = b"trojan"

    with pytest.raises(JarError, match=r"two-2\.0\.jar: sha256 .* removed"):
        kafka_jars(tmp_path, pins=_PINS, fetch=repository.fetch)

    assert not [file for file in tmp_path.rglob("*") if file.is_file() and file.read_bytes() == b"trojan"]


def test_lasting_failure_says_what_to_do(tmp_path: Path, repository: Repository) -> None:
    """Without network the message names the way around it."""
    repository.failures = 100

    with pytest.raises(JarError, match=r"connection reset.*TURNTIDE_KAFKA"):
        kafka_jars(tmp_path, pins=_PINS, fetch=repository.fetch)


def test_pins_are_complete() -> None:
    """The committed file pins the broker itself, of the version the cache is named after, and its logging."""
    pins = pinned()

    assert f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}" in pins
    assert any("log4j-slf4j-impl" in coordinate for coordinate in pins)
    assert all(len(sha256) == 64 for sha256 in pins.values())
    assert len({jar_name(coordinate) for coordinate in pins}) == len(pins)
