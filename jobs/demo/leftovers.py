"""Folders of demos, with broker, archive and conversations: made in the temporary folder, removed by `--clean`."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from models.errors import ConfigurationError

_PREFIX = "turntide-demo-"
_BLOCK_BYTES = 512
_LOCK, _POLICY = "demo.lock", "policy.toml"


def new_folder() -> Path:
    """A new folder of a demo, open to this user alone."""
    return Path(tempfile.mkdtemp(prefix=_PREFIX))


def folders() -> list[Path]:
    """Folders that demos of this user made in the temporary folder, running ones among them."""
    found = Path(tempfile.gettempdir()).glob(f"{_PREFIX}*")
    mine = (each for each in found if each.is_dir() and not each.is_symlink() and each.stat().st_uid == os.getuid())
    return sorted(mine)


def is_temporary(folder: Path) -> bool:
    """Check that `--clean` finds the folder by itself."""
    return folder.resolve() in [each.resolve() for each in folders()]


def size_bytes(folder: Path) -> int:
    """Bytes that its files take on the disk: Kafka's indexes are holes for the most part."""
    found = (file.stat(follow_symlinks=False) for file in folder.rglob("*") if file.is_file())
    return sum(min(each.st_size, _BLOCK_BYTES * each.st_blocks) for each in found)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold a folder while its demo runs: it is not removed meanwhile."""
    with FileLock(folder / _LOCK, timeout=0):
        yield


def remove(folder: Path) -> bool:
    """Remove what a demo left; False where one runs there.

    Raises:
        ConfigurationError: It is no folder of a demo.
    """
    from jobs.operate.broker.local_kafka import broker_record

    if not folder.is_dir() or (any(folder.iterdir()) and not (folder / _POLICY).is_file()):
        raise ConfigurationError(f"{folder} is no folder of a demo: nothing is removed")
    record = broker_record(folder / "kafka")
    if record is not None and record.process():  # an earlier release holds no lock
        return False
    try:
        with held(folder):
            shutil.rmtree(folder)
    except Timeout:
        return False
    return True
