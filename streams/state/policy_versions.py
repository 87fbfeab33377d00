"""Policies that logs were folded by, kept on disk to fold them again (`turntide ops replay --alert`, `--compare`).

Below `<data_dir>/versions`:

* `policy-<digest>.json`: a policy with all that the stream goes by, weights of the combination too; alerts name its
  digest;
* `<scorer>.bin`: the file of a scorer that has one, by the scorer's name;
* `history.jsonl`: from which offset on a partition was folded by which of them, a line for each assignment, by the
  role sessions; `history-memory.jsonl` by the role memory.

Nothing is overwritten with other content or deleted. Several workers may share the folder; where they have one each,
copy the files together, and append their histories to one another in any order: each line has its time.
"""

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import msgspec
from msgspec import Struct

from models.errors import ConfigurationError, StoreUnavailable
from models.policy import Policy, load_policy
from models.policy.digest import live_policy, policy_digest
from streams.settings import Settings


class Version(Struct, frozen=True):
    """What decides a fold besides its input."""

    policy: str
    """Digest."""
    scorer: str
    """Name; empty: not known. Likewise …"""
    embedder: str


class Stretch(Struct, frozen=True):
    """A partition of the role's log was folded by this version from this offset on."""

    prefix: str
    """Of the topics."""
    partition: int
    first_offset: int
    version: Version
    at: datetime | None = None
    """When it was assigned, aware: by the worker's clock, and never before what stands in its file already. None: a
    release before this one noted it."""


SESSIONS = "sessions"
"""The role whose history stands in `history.jsonl`; another's file is named after it."""
_BEFORE_TIMES = datetime.min.replace(tzinfo=UTC)
"""Lines without a time are older than any that has one, and stay in their order."""


def policy_path(settings: Settings, digest: str) -> Path:
    """Where a policy is kept."""
    return _folder(settings) / f"policy-{digest}.json"


def scorer_path(settings: Settings, name: str) -> Path:
    """Where a scorer's file is kept; what a path does not like in the name is percent-encoded."""
    return _folder(settings) / f"{quote(name, safe='')}.bin"


def _folder(settings: Settings) -> Path:
    return settings.data_dir / "versions"


def _history_path(settings: Settings, role: str) -> Path:
    return _folder(settings) / ("history.jsonl" if role == SESSIONS else f"history-{role}.jsonl")


# --- keeping


def keep(settings: Settings, policy: Policy, scorer_file: bytes | None, name: str) -> str:
    """Keep a policy and its scorer's file, if it has one, as of their names; returns the policy's digest.

    What is kept already stays as it is.

    Raises:
        ConfigurationError: Something else is kept by that name: it was damaged, or a name was given twice.
        StoreUnavailable: The folder cannot be written.
    """
    digest = policy_digest(policy)
    _keep(policy_path(settings, digest), live_policy(policy))
    if scorer_file is not None:
        _keep(scorer_path(settings, name), scorer_file)
    return digest


def _keep(path: Path, data: bytes) -> None:
    try:
        if path.exists():
            if path.read_bytes() != data:
                raise ConfigurationError(
                    f"{path} has other content than the version in its name: it is damaged, or another version has the "
                    "same name. Move it away."
                )
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            try:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                # Another worker that writes the same version at this moment writes the same bytes.
                Path(file.name).replace(path)
            except OSError:
                Path(file.name).unlink()
                raise
    except OSError as error:
        raise _not_written(path, error) from error


def note(
    settings: Settings,
    first_offsets: Mapping[int, int],
    version: Version,
    *,
    role: str = SESSIONS,
    now: datetime | None = None,
) -> None:
    """Note that a role folds partitions by this version from these offsets on.

    Also where this folder knows it: a worker with another one may have had the partition in between.

    Raises:
        StoreUnavailable: The folder cannot be written.
    """
    path = _history_path(settings, role)
    # A clock that went back would put this assignment before others of the file that it follows.
    at = max([now or datetime.now(UTC), *(line.at for line in _lines(path) if line.at is not None)])
    lines = [
        Stretch(settings.topic_prefix, partition, first, version, at) for partition, first in first_offsets.items()
    ]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            # A line that a crash cut short spoils none after it: each begins anew.
            file.write(b"".join(b"\n" + msgspec.json.encode(line) + b"\n" for line in lines))
    except OSError as error:
        raise _not_written(path, error) from error


def _not_written(path: Path, error: OSError) -> StoreUnavailable:
    return StoreUnavailable(f"{path} cannot be written: {error.strerror}. Is the data directory full or read-only?")


# --- reading


def history(settings: Settings, partition: int, *, role: str = SESSIONS) -> list[Stretch]:
    """Which version folded a partition of the role's log, in the order of offsets: each until the next. May be empty.

    Raises:
        StoreUnavailable: It is there and cannot be read.
    """
    found: list[Stretch] = []
    # A later line wins over what earlier ones said of the same offsets: after a loss of state they are folded anew.
    for line in sorted(_lines(_history_path(settings, role)), key=lambda line: line.at or _BEFORE_TIMES):
        if (line.prefix, line.partition) != (settings.topic_prefix, partition):
            continue
        while found and found[-1].first_offset >= line.first_offset:
            found.pop()
        if not found or found[-1].version != line.version:
            found.append(line)
    return found


def _lines(path: Path) -> Sequence[Stretch]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be read: {error.strerror}") from error
    found = []
    for line in data.splitlines():
        with suppress(msgspec.MsgspecError):  # empty, or cut short by a crash
            found.append(msgspec.json.decode(line, type=Stretch))
    return found


def kept_policy(settings: Settings, digest: str) -> Policy:
    """The policy with this digest.

    Raises:
        ConfigurationError: It is not kept here, is damaged, or another release's that this one cannot read.
    """
    path = policy_path(settings, digest)
    data = _read(path, f"policy {digest}")
    found = sha256(data).hexdigest()[: len(digest)]
    if found != digest:
        raise ConfigurationError(
            f"{path} is damaged: its digest is {found}. Restore it from another worker or a backup."
        )
    return load_policy(data, "json")


def kept_scorer_file(settings: Settings, name: str) -> bytes:
    """The file of the scorer of this name.

    Raises:
        ConfigurationError: It is not kept here.
    """
    return _read(scorer_path(settings, name), f"scorer {name}")


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"{what} is not stored here: {path} is missing. A sessions worker writes it to its data directory when it "
            "starts: copy the file from there, or set TURNTIDE_DATA_DIR to that directory"
        ) from error
    except OSError as error:
        raise ConfigurationError(f"{what}: {path} cannot be read: {error.strerror}") from error
