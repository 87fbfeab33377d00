"""Apache Kafka's jars: pinned, fetched once into the user's cache, verified on every start.

`jars.json` maps each Maven coordinate to the sha256 of its jar. The cache is right exactly when
every pinned file is there with its checksum, so an interrupted download or a damaged file is simply
fetched again. Downloads go to a staging folder and are moved into place only after verification.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from models.errors import TurntideError

KAFKA_VERSION = "4.2.0"
_KAFKA = f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}"
_PINS = Path(__file__).with_name("jars.json")
_PARALLEL_DOWNLOADS = 8
_ATTEMPTS = 3
_HTTP_TIMEOUT_SECONDS = 30
_LOCK_TIMEOUT_SECONDS = 900.0

Fetch: TypeAlias = Callable[[str, Path], Path]
"""Downloads a coordinate's jar somewhere below an empty folder and returns the file."""


class JarError(TurntideError):
    """Kafka's jars could not be fetched, or what was fetched is not what was pinned."""


def cache_dir() -> Path:
    """Folder of this Kafka version's jars below the user's cache (`XDG_CACHE_HOME`)."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "turntide" / "kafka" / KAFKA_VERSION


def pinned() -> dict[str, str]:
    """Coordinate (`group:artifact:version`) → sha256 of every jar that Kafka needs."""
    return msgspec.json.decode(_PINS.read_bytes(), type=dict[str, str])


def kafka_jars(
    cache: Path | None = None, *, pins: dict[str, str] | None = None, fetch: Fetch | None = None
) -> list[Path]:
    """Return the verified jars, in class path order, fetching those that are missing or damaged.

    Safe to call from several processes at once: one fetches, the others wait for it.

    Args:
        cache: Folder to keep the jars in; default `cache_dir()`.
        pins: Coordinate → sha256; default `pinned()`.
        fetch: How to download one jar; default through jgo, from the repositories it is configured with.

    Raises:
        JarError: A download failed three times, or its checksum is not the pinned one.
    """
    from filelock import FileLock

    cache = cache or cache_dir()
    pins = pinned() if pins is None else pins
    jars = [cache / jar_name(coordinate) for coordinate in pins]
    if _missing(pins, cache):
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(cache / "fetch.lock", timeout=_LOCK_TIMEOUT_SECONDS):
            _fetch_all(_missing(pins, cache), cache, fetch or download)
    return jars


def jar_name(coordinate: str) -> str:
    """File name of a coordinate's jar.

    >>> jar_name("org.slf4j:slf4j-api:1.7.36")
    'slf4j-api-1.7.36.jar'
    """
    _, artifact, version = coordinate.split(":")
    return f"{artifact}-{version}.jar"


def download(coordinate: str, folder: Path) -> Path:
    """Fetch one jar through jgo, from the repositories of the user's jgo configuration or its default."""
    jar: Path = _maven(folder).create_dependency(coordinate).artifact.resolve()
    return jar


def write_pins(path: Path = _PINS) -> dict[str, str]:
    """Resolve Kafka's dependencies anew and write every jar's coordinate and sha256 to `path`.

    The logging back end is added by hand: Kafka's own distribution brings it, its Maven artifact does not.
    """
    staging = cache_dir() / "pin"
    shutil.rmtree(staging, ignore_errors=True)
    maven = _maven(staging)
    root = maven.create_dependency(_KAFKA)
    inputs, transitive = maven.resolver.resolve([root])
    found = {(d.groupId, d.artifactId): d.version for d in [*inputs, *transitive]}
    log4j = "org.apache.logging.log4j"
    found[log4j, "log4j-slf4j-impl"] = found[log4j, "log4j-core"]
    coordinates = sorted(f"{group}:{artifact}:{version}" for (group, artifact), version in found.items())
    with ThreadPoolExecutor(_PARALLEL_DOWNLOADS) as pool:
        jars = pool.map(partial(download, folder=staging), coordinates)
        pins = {coordinate: _sha256(jar) for coordinate, jar in zip(coordinates, jars, strict=True)}
    path.write_bytes(msgspec.json.format(msgspec.json.encode(pins), indent=2) + b"\n")
    shutil.rmtree(staging)
    return pins


def _maven(folder: Path) -> Any:
    from jgo.config import GlobalSettings
    from jgo.maven import MavenContext, PythonResolver

    maven = MavenContext(resolver=PythonResolver(), repo_cache=folder, timeout=_HTTP_TIMEOUT_SECONDS)
    maven.remote_repos = {**GlobalSettings.load().repositories, **maven.remote_repos}  # a mirror comes first
    return maven


def _missing(pins: dict[str, str], cache: Path) -> dict[str, str]:
    """Pins whose jar is absent or has another checksum."""

    def present(coordinate: str) -> bool:
        jar = cache / jar_name(coordinate)
        return jar.is_file() and _sha256(jar) == pins[coordinate]

    return {coordinate: sha256 for coordinate, sha256 in pins.items() if not present(coordinate)}


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _fetch_all(pins: dict[str, str], cache: Path, fetch: Fetch) -> None:
    """Fetch `pins` in parallel; on the first failure the downloads not yet begun are dropped."""
    staging = cache / "staging"
    shutil.rmtree(staging, ignore_errors=True)  # left by a process that was killed
    pool = ThreadPoolExecutor(_PARALLEL_DOWNLOADS)
    try:
        fetch_one = partial(_fetch_one, cache=cache, staging=staging, fetch=fetch)
        fetched = pool.map(fetch_one, pins.keys(), pins.values())
        for _ in _shown(fetched, len(pins)):
            pass
    finally:
        pool.shutdown(cancel_futures=True)
        shutil.rmtree(staging, ignore_errors=True)


def _fetch_one(coordinate: str, sha256: str, cache: Path, staging: Path, fetch: Fetch) -> None:
    name = jar_name(coordinate)
    jar = _with_retries(coordinate, staging, fetch)
    found = _sha256(jar)
    if found != sha256:
        jar.unlink(missing_ok=True)
        raise JarError(
            f"{name}: sha256 is {found}, pinned is {sha256}. The file was removed. "
            "A proxy or mirror serves something else than Kafka's published jar: "
            "check the repositories that jgo is configured with, then try again."
        )
    jar.replace(cache / name)


def _with_retries(coordinate: str, staging: Path, fetch: Fetch) -> Path:
    """Fetch into a fresh folder each time, so that half a file is never taken for a whole one."""
    failures: list[Exception] = []
    for attempt in range(_ATTEMPTS):
        try:
            return fetch(coordinate, staging / f"{jar_name(coordinate)}-{attempt}")
        except (OSError, RuntimeError, AssertionError) as failure:  # what jgo and requests raise
            failures.append(failure)
    raise JarError(
        f"cannot fetch {coordinate}: {failures[-1]}. Check the network or the repositories that jgo is "
        "configured with, or point TURNTIDE_KAFKA=host:port at a cluster that is already running."
    ) from failures[-1]


def _shown(fetched: Iterable[None], total: int) -> Iterable[None]:
    """Pass through with a progress bar on stderr."""
    from rich.console import Console
    from rich.progress import track

    label = f"Fetching Apache Kafka {KAFKA_VERSION} (once)"
    return track(fetched, label, total=total, console=Console(stderr=True), transient=True)
