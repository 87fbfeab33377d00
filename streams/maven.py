"""Files from Maven Central: pinned, fetched once into the user's cache, verified on every start.

Pins map a Maven coordinate to the sha256 of its jar. A cache is right exactly when every pinned file is there with its
checksum, so an interrupted download or a damaged file is simply fetched again. Downloads go to a staging folder and are
moved into place only after verification.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from filelock import FileLock

from models.errors import TurntideError

PARALLEL_DOWNLOADS = 8
_ATTEMPTS = 3
_HTTP_TIMEOUT_SECONDS = 30
_LOCK_TIMEOUT_SECONDS = 900.0

Fetch: TypeAlias = Callable[[str, Path], Path]
"""Downloads a coordinate's jar somewhere below an empty folder and returns the file."""


class JarError(TurntideError):
    """A jar could not be fetched, or what was fetched is not what was pinned."""


def cache_folder() -> Path:
    """Turntide's folder in the user's cache (`XDG_CACHE_HOME`)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "turntide"


def jars(pins: Mapping[str, str], cache: Path, *, what: str, instead: str, fetch: Fetch | None = None) -> list[Path]:
    """Return the verified jars, in the pins' order, fetching those that are missing or damaged.

    Safe to call from several processes at once: one fetches, the others wait for it.

    Args:
        pins: Coordinate (`group:artifact:version`) → sha256.
        cache: Folder to keep the jars in.
        what: Their name beside the bar of progress.
        instead: What can be done where they cannot be fetched, for the message.
        fetch: How to download one jar; default through jgo, from the repositories it is configured with.

    Raises:
        JarError: A download failed three times, or its checksum is not the pinned one.
    """
    if missing_jars(pins, cache):
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(cache / "fetch.lock", timeout=_LOCK_TIMEOUT_SECONDS):
            _fetch_all(missing_jars(pins, cache), cache, partial(_with_retries, fetch or download, instead), what)
    return [cache / jar_name(coordinate) for coordinate in pins]


def missing_jars(pins: Mapping[str, str], cache: Path) -> dict[str, str]:
    """Pins whose jar is absent or has another checksum."""

    def present(coordinate: str) -> bool:
        jar = cache / jar_name(coordinate)
        return jar.is_file() and sha256_of(jar) == pins[coordinate]

    return {coordinate: sha256 for coordinate, sha256 in pins.items() if not present(coordinate)}


def jar_name(coordinate: str) -> str:
    """File name of a coordinate's jar.

    >>> jar_name("org.slf4j:slf4j-api:1.7.36")
    'slf4j-api-1.7.36.jar'
    """
    _, artifact, version = coordinate.split(":")
    return f"{artifact}-{version}.jar"


def download(coordinate: str, folder: Path) -> Path:
    """Fetch one jar through jgo, from the repositories of the user's jgo configuration or its default."""
    jar: Path = maven(folder).create_dependency(coordinate).artifact.resolve()
    return jar


def maven(folder: Path) -> Any:
    """Return jgo's access to Maven, its downloads below a folder; a mirror of the user's configuration comes first."""
    from jgo.config import GlobalSettings  # noqa: PLC0415 - only where something is missing
    from jgo.maven import MavenContext, PythonResolver  # noqa: PLC0415 - likewise

    context = MavenContext(resolver=PythonResolver(), repo_cache=folder, timeout=_HTTP_TIMEOUT_SECONDS)
    context.remote_repos = {**GlobalSettings.load().repositories, **context.remote_repos}
    return context


def sha256_of(file: Path) -> str:
    """Checksum of a file, in hexadecimal."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _fetch_all(pins: dict[str, str], cache: Path, fetch: Fetch, what: str) -> None:
    """Fetch `pins` in parallel; on the first failure the downloads not yet begun are dropped."""
    staging = cache / "staging"
    shutil.rmtree(staging, ignore_errors=True)  # left by a process that was killed
    pool = ThreadPoolExecutor(PARALLEL_DOWNLOADS)
    try:
        fetch_one = partial(_fetch_one, cache=cache, staging=staging, fetch=fetch)
        fetched = pool.map(fetch_one, pins.keys(), pins.values())
        for _ in _shown(fetched, len(pins), what):
            pass
    finally:
        pool.shutdown(cancel_futures=True)
        shutil.rmtree(staging, ignore_errors=True)


def _fetch_one(coordinate: str, sha256: str, cache: Path, staging: Path, fetch: Fetch) -> None:
    name = jar_name(coordinate)
    jar = fetch(coordinate, staging)
    found = sha256_of(jar)
    if found != sha256:
        jar.unlink(missing_ok=True)
        raise JarError(
            f"{name}: sha256 is {found}, pinned is {sha256}. The file was removed. "
            "A proxy or mirror serves another file than the published one: "
            "check the repositories in the configuration of jgo, then try again."
        )
    jar.replace(cache / name)


def _with_retries(fetch: Fetch, instead: str, coordinate: str, staging: Path) -> Path:
    """Fetch into a fresh folder each time, so that half a file is never taken for a whole one."""
    failures: list[Exception] = []
    for attempt in range(_ATTEMPTS):
        try:
            return fetch(coordinate, staging / f"{jar_name(coordinate)}-{attempt}")
        except (OSError, RuntimeError, AssertionError) as failure:  # what jgo and requests raise
            failures.append(failure)
    raise JarError(
        f"cannot fetch {coordinate}: {failures[-1]}. Check the network or the repositories in the "
        f"configuration of jgo, or {instead}."
    ) from failures[-1]


def _shown(fetched: Iterable[None], total: int, what: str) -> Iterable[None]:
    """Pass through with a progress bar on stderr."""
    from rich.console import Console  # noqa: PLC0415 - likewise
    from rich.progress import track  # noqa: PLC0415 - likewise

    return track(fetched, f"Fetching {what} (once)", total=total, console=Console(stderr=True), transient=True)
