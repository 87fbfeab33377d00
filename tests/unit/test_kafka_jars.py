"""Kafka's jars: only what was pinned is ever used."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from jobs.operate.broker.jars import KAFKA_VERSION, JarError, jar_name, kafka_jars, pinned

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
