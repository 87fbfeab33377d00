"""Apache Kafka's jars: `jars.json` pins each Maven coordinate to the sha256 of its jar."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import msgspec

from streams.maven import PARALLEL_DOWNLOADS, Fetch, cache_folder, download, jars, maven, sha256_of

KAFKA_VERSION = "4.2.0"
_KAFKA = f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}"
_PINS = Path(__file__).with_name("jars.json")


def cache_dir() -> Path:
    """Folder of this Kafka version's jars below the user's cache."""
    return cache_folder() / "kafka" / KAFKA_VERSION


def pinned() -> dict[str, str]:
    """Coordinate (`group:artifact:version`) → sha256 of every jar that Kafka needs."""
    return msgspec.json.decode(_PINS.read_bytes(), type=dict[str, str])


def kafka_jars(
    cache: Path | None = None, *, pins: dict[str, str] | None = None, fetch: Fetch | None = None
) -> list[Path]:
    """Return the verified jars, in class path order, fetching those that are missing or damaged (`streams.maven.jars`).

    Args:
        cache: Folder to keep the jars in; default `cache_dir()`.
        pins: Coordinate → sha256; default `pinned()`.
        fetch: How to download one jar; default through jgo.

    Raises:
        JarError: A download failed three times, or its checksum is not the pinned one.
    """
    return jars(
        pinned() if pins is None else pins,
        cache or cache_dir(),
        what=f"Apache Kafka {KAFKA_VERSION}",
        instead="point TURNTIDE_KAFKA=host:port at a cluster that is already running",
        fetch=fetch,
    )


def write_pins(path: Path = _PINS) -> dict[str, str]:
    """Resolve Kafka's dependencies anew and write every jar's coordinate and sha256 to `path`.

    The logging back end is added by hand: Kafka's own distribution brings it, its Maven artifact does not.
    """
    staging = cache_dir() / "pin"
    shutil.rmtree(staging, ignore_errors=True)
    found_by = maven(staging)
    root = found_by.create_dependency(_KAFKA)
    inputs, transitive = found_by.resolver.resolve([root])
    found = {(d.groupId, d.artifactId): d.version for d in [*inputs, *transitive]}
    log4j = "org.apache.logging.log4j"
    found[log4j, "log4j-slf4j-impl"] = found[log4j, "log4j-core"]
    coordinates = sorted(f"{group}:{artifact}:{version}" for (group, artifact), version in found.items())
    with ThreadPoolExecutor(PARALLEL_DOWNLOADS) as pool:
        fetched = pool.map(partial(download, folder=staging), coordinates)
        pins = {coordinate: sha256_of(jar) for coordinate, jar in zip(coordinates, fetched, strict=True)}
    path.write_bytes(msgspec.json.format(msgspec.json.encode(pins), indent=2) + b"\n")
    shutil.rmtree(staging)
    return pins
