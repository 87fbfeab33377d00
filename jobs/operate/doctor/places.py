"""Checks of folders: is there room, and may they be written to."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from jobs.operate.doctor.verdict import Status, Verdict
from streams.settings import Settings

_WARN_FREE_BYTES = 5 * 1024**3
_FAIL_FREE_BYTES = 512 * 1024**2
_GIB = 1024**3


def check_disk(settings: Settings) -> Verdict:
    """Whether the disks of data directory and archive have room."""
    places = {"TURNTIDE_DATA_DIR": settings.data_dir, **lake_places(settings)}
    room = {name: (place, shutil.disk_usage(existing(place)).free) for name, place in places.items()}
    for name, (place, free_bytes) in room.items():
        if free_bytes < _FAIL_FREE_BYTES:
            return Verdict(
                Status.FAIL,
                _shown(place, free_bytes),
                f"free some space there (`turntide archive retain`, old logs), or set {name} to another disk",
            )
    if not writable(settings.data_dir):
        return Verdict(Status.FAIL, f"{existing(settings.data_dir)} cannot be written to", _write_advice("DATA_DIR"))
    place, least = min(room.values(), key=lambda each: each[1])
    if least < _WARN_FREE_BYTES:
        return Verdict(Status.WARN, _shown(place, least), "the archive grows: plan for more space")
    return Verdict(Status.OK, _shown(place, least))


def check_lake(settings: Settings) -> Verdict:
    """Whether the archive role may write where catalog and files are."""
    places = lake_places(settings)
    for name, place in places.items():
        if not writable(place):
            return Verdict(
                Status.FAIL,
                f"{place}: {existing(place)} cannot be written to",
                _write_advice(name.removeprefix("TURNTIDE_")),
            )
    if not places:
        return Verdict(Status.OK, "in PostgreSQL and on S3: `archive` says whether they answer")
    return Verdict(Status.OK, f"{', '.join(str(place) for place in places.values())} can be written to")


def lake_places(settings: Settings) -> dict[str, Path]:
    """Folders and the catalog's file by the setting that says where they are; what is elsewhere is left out."""
    from streams.archive.place import paths_of

    paths = paths_of(settings)
    places = {}
    if paths.postgres is None:
        places["TURNTIDE_ARCHIVE__CATALOG"] = paths.catalog
    if paths.is_folder:
        places["TURNTIDE_ARCHIVE__DATA_PATH"] = Path(paths.data)
    return places


def _write_advice(setting: str) -> str:
    return (
        "give the folder to the user that runs the workers (chown, chmod u+rwx; a mount must not be read-only), or "
        f"set TURNTIDE_{setting} to another place"
    )


def _shown(place: Path, free_bytes: int) -> str:
    return f"{place}: {free_bytes / _GIB:.1f} GiB free"


def writable(place: Path) -> bool:
    """Whether this user may write to it, or make it; asked of the system, nothing is written."""
    nearest = existing(place)
    if nearest.is_file():
        # SQLite keeps its journal beside the file.
        return nearest == place and os.access(nearest, os.W_OK) and os.access(nearest.parent, os.W_OK | os.X_OK)
    return nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)


def existing(place: Path) -> Path:
    """The place, or the nearest one above it that this user sees: what is missing is made when it is needed."""
    return next(each for each in (place, *place.absolute().parents) if _is_seen(each))


def _is_seen(place: Path) -> bool:
    """Below a folder that is closed to this user nothing is."""
    try:
        return place.exists()
    except PermissionError:
        return False
