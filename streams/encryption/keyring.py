"""Data keys of the apps: wrapped in a file that all roles share, created at the first write of an app, and erasable.

The id of a key precedes everything that it encrypted. An app has one key for encryption, and earlier keys for
decryption (`rotate`). The erasure of an app's keys keeps their ids, so that readers recognise erased data. An id that
the file never had is a missing key: a reader that meets it stops.

The file is replaced as a whole under a lock, so a crash leaves the old or the new file. A key is in the file before
anything is encrypted with it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock

import msgspec
from filelock import FileLock
from msgspec import Struct

from models.errors import ConfigurationError
from streams.encryption.tokens import ID_BYTES, DataKey
from streams.encryption.wrapping import wrapper_of
from streams.ports import KeyWrapper
from streams.settings import EncryptionSettings, Settings, load_settings

NOBODY = ""
"""App of data without an app: progress of partitions, dead letters. Its key is created with the file."""
_SECRET_BYTES = 64


class WrappedKey(Struct, frozen=True, kw_only=True):
    """A key in the file; the last one of an app encrypts."""

    id: str
    app_id: str
    made_at: datetime
    wrapped: str


class ErasedKey(Struct, frozen=True, kw_only=True):
    """The id of an erased key."""

    id: str
    app_id: str
    erased_at: datetime


class _File(Struct, frozen=True, kw_only=True):
    version: int = 1
    keys: tuple[WrappedKey, ...] = ()
    erased: tuple[ErasedKey, ...] = ()


class Keyring:
    """Reads and changes the file. Thread-safe.

    Raises:
        ConfigurationError: The file is missing or damaged, or the master key is wrong.
    """

    def __init__(self, path: Path, wrapper: KeyWrapper) -> None:
        self._path, self._wrapper = path, wrapper
        self._lock = RLock()
        self._stat: tuple[int, int, int] | None = None
        self._file = _File()
        self._opened: dict[bytes, DataKey] = {}
        self.version = 0
        """Number of changes of the file that were read."""
        self.refresh()
        self.key(bytes.fromhex(self._newest[NOBODY].id))  # a wrong master key is told at the start

    @staticmethod
    def init(path: Path, wrapper: KeyWrapper) -> None:
        """Create the file.

        Raises:
            ConfigurationError: It exists already, or cannot be created.
        """
        if path.exists():
            raise ConfigurationError(f"keyring {path} exists already: its keys are needed to read existing data")
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, _File(keys=(_made(wrapper, NOBODY),)))

    @property
    def keys(self) -> tuple[WrappedKey, ...]:
        """Keys of all apps."""
        return self._file.keys

    @property
    def erased(self) -> tuple[ErasedKey, ...]:
        """Erased keys."""
        return self._file.erased

    def refresh(self) -> None:
        """Read the file again if it changed."""
        with self._lock:
            try:
                seen = self._seen()
                while seen != self._stat:
                    self._read()
                    self._stat, seen = seen, self._seen()  # what was replaced meanwhile is read once more
            except OSError as error:
                raise ConfigurationError(
                    f"encryption.keyring {self._path} cannot be read ({error.strerror}): `turntide ops keys init` "
                    "creates a new one; if there was one, restore it, since no encrypted data can be read without it"
                ) from error

    def _seen(self) -> tuple[int, int, int]:
        stat = self._path.stat()
        return stat.st_ino, stat.st_mtime_ns, stat.st_size

    def _read(self) -> None:
        before = self._seen()
        try:
            file = msgspec.json.decode(self._path.read_bytes(), type=_File)
        except msgspec.MsgspecError as error:
            if self._seen() != before:
                return self._read()
            raise ConfigurationError(f"encryption.keyring {self._path} is damaged: restore a copy") from error
        self._file = file
        self._by_id = {bytes.fromhex(each.id): each for each in file.keys}
        self._newest = {each.app_id: each for each in file.keys}
        self._gone = {bytes.fromhex(each.id) for each in file.erased}
        self._opened = {key_id: key for key_id, key in self._opened.items() if key_id in self._by_id}
        self.version += 1
        return None

    def holds(self, key_id: bytes) -> bool:
        """Whether this file has or had a key."""
        return key_id in self._by_id or key_id in self._gone

    def key(self, key_id: bytes) -> DataKey | None:
        """A key of the file; None: it was erased."""
        with self._lock:
            if (found := self._opened.get(key_id)) is None and (wrapped := self._by_id.get(key_id)) is not None:
                found = DataKey(key_id, wrapped.app_id, self._wrapper.unwrap(wrapped.wrapped, wrapped.app_id))
                self._opened[key_id] = found
            return found

    def newest(self, app_id: str) -> DataKey:
        """The encrypting key of an app; created if there is none."""
        if app_id not in self._newest:
            self._change(
                lambda file: file if app_id in {key.app_id for key in file.keys} else self._with_new(file, app_id)
            )
        key = self.key(bytes.fromhex(self._newest[app_id].id))
        assert key is not None  # noqa: S101 - it was in the file just now
        return key

    def rotate(self, app_id: str) -> None:
        """Give an app a new key; its earlier keys still decrypt."""
        self._change(lambda file: self._with_new(file, app_id))

    def rewrap(self) -> None:
        """Wrap every key again with the current wrapper."""

        def rewrapped(key: WrappedKey) -> WrappedKey:
            secret = self._wrapper.unwrap(key.wrapped, key.app_id)
            return msgspec.structs.replace(key, wrapped=self._wrapper.wrap(secret, key.app_id))

        self._change(lambda file: msgspec.structs.replace(file, keys=tuple(map(rewrapped, file.keys))))

    def erase(self, app_id: str, lost: str = "") -> list[ErasedKey]:
        """Erase the keys of an app permanently, or record the id of a lost key; returns them, empty if there are none.

        Raises:
            ConfigurationError: `lost` is not the id of a key, or the file has that key.
        """
        lost = lost and self._lost_id(lost)
        now, gone = datetime.now(UTC), list[ErasedKey]()

        def without(file: _File) -> _File:
            ids = [lost] if lost else [key.id for key in file.keys if key.app_id == app_id]
            gone[:] = [ErasedKey(id=key_id, app_id=app_id, erased_at=now) for key_id in ids]
            kept = tuple(key for key in file.keys if key.id not in ids)
            return _File(keys=kept, erased=(*file.erased, *gone))

        self._change(without)
        return gone

    def _lost_id(self, said: str) -> str:
        try:
            key_id = bytes.fromhex(said)
        except ValueError:
            key_id = b""
        if len(key_id) != ID_BYTES:
            raise ConfigurationError(f"{said} is not the id of a key: use the {2 * ID_BYTES} digits from the error")
        self.refresh()
        if self.holds(key_id):
            raise ConfigurationError(
                f"key {said} is not lost: see `turntide ops keys list`; use --app to erase an app's keys"
            )
        return key_id.hex()

    def _with_new(self, file: _File, app_id: str) -> _File:
        return msgspec.structs.replace(file, keys=(*file.keys, _made(self._wrapper, app_id)))

    def _change(self, changed: Callable[[_File], _File]) -> None:
        with self._lock, FileLock(f"{self._path}.lock"):
            self._stat = None
            self.refresh()
            _write(self._path, changed(self._file))
            self.refresh()


def _made(wrapper: KeyWrapper, app_id: str) -> WrappedKey:
    wrapped = wrapper.wrap(os.urandom(_SECRET_BYTES), app_id)
    return WrappedKey(id=os.urandom(ID_BYTES).hex(), app_id=app_id, made_at=datetime.now(UTC), wrapped=wrapped)


def _write(path: Path, file: _File) -> None:
    """Replace the file and overwrite the old one's bytes, so that no erased key stays on the disk."""
    beginning = path.with_name(f".{path.name}.new")
    beginning.unlink(missing_ok=True)
    beginning.touch(mode=0o600)
    with beginning.open("wb") as new:
        new.write(msgspec.json.format(msgspec.json.encode(file)))
        new.flush()
        os.fsync(new.fileno())
    old = path.open("r+b") if path.exists() else None
    beginning.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # else a power cut could take a key back that something is sealed with
    finally:
        os.close(folder)
    if old is not None:
        with old:
            old.write(bytes(os.fstat(old.fileno()).st_size))
            old.flush()
            os.fsync(old.fileno())


_KNOWN: dict[Path, Keyring] = {}


def keyring_of(settings: EncryptionSettings) -> Keyring | None:
    """The keyring of this process; None without encryption.

    Raises:
        ConfigurationError: As `wrapper_of` and `Keyring`.
    """
    if settings.keyring is None:
        return None
    if (known := _KNOWN.get(settings.keyring)) is None:
        known = _KNOWN[settings.keyring] = Keyring(settings.keyring, wrapper_of(settings))
    return known


def key_of_id(key_id: bytes) -> DataKey | None:
    """A key by its id, from the keyrings of this process; None: it was erased.

    Raises:
        ConfigurationError: No keyring has it.
    """
    if not _KNOWN:
        keyring_of(load_settings().encryption)
    for look_again in (False, True):
        for ring in list(_KNOWN.values()):
            if look_again:
                with suppress(ConfigurationError):  # one that went has no say
                    ring.refresh()
            if ring.holds(key_id):
                return ring.key(key_id)
    raise ConfigurationError(
        f"data is encrypted with the key {key_id.hex()}, which "
        + (f"{', '.join(map(str, _KNOWN))} does not have" if _KNOWN else "needs encryption.keyring and its master key")
        + ": restore that keyring; nothing was changed. "
        "If it is lost for good, record that with `turntide ops keys erase --lost ID`: roles then skip its data"
    )


class Sealer:
    """Encrypting keys as of the last `refresh`. Each writer has its own, and decides when it drops erased keys.

    Data encrypted with a key that was erased in the meantime is unreadable, as intended.
    """

    def __init__(self, ring: Keyring, apps: tuple[str, ...] = ()) -> None:
        self._ring, self._apps = ring, frozenset(apps)
        self._keys: dict[str, DataKey] = {}
        self._version, self._erased = ring.version, len(ring.erased)

    def key(self, app_id: str) -> DataKey | None:
        """The key of an app; None without encryption."""
        if (found := self._keys.get(app_id)) is None:
            if app_id and self._apps and app_id not in self._apps:
                return None
            found = self._keys[app_id] = self._ring.newest(app_id)
        return found

    @property
    def erased(self) -> tuple[ErasedKey, ...]:
        """Erased keys."""
        return self._ring.erased

    def refresh(self) -> bool:
        """Use the keyring's current keys; returns whether keys were erased: their decrypted data must be dropped."""
        self._ring.refresh()
        if self._ring.version == self._version:
            return False
        self._keys.clear()
        erased, self._version, self._erased = self._erased, self._ring.version, len(self._ring.erased)
        return self._erased != erased


def sealer_of(settings: Settings) -> Sealer | None:
    """A sealer for a writer; None without encryption."""
    ring = keyring_of(settings.encryption)
    return None if ring is None else Sealer(ring, settings.encryption.apps)
