"""RocksDB after an erasure: no file holds a byte of what was let go, and everything else is there."""

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Literal
from unittest.mock import AsyncMock

import msgspec
import pytest

from models.partition.log_fold import ERASED_PART, PARTITION_ENTITY
from streams.observe.telemetry import metrics
from streams.settings import Settings, StateSettings
from streams.state.changelog import keyed
from streams.state.rocksdb import RocksTable, drop_outdated, open_table
from streams.state.table import StateTable

CANARY = "canary-0123456789"
"""Part of the names of what is erased, and of its values."""
OTHERS = 400


def opened(folder: Path) -> RocksTable:
    """A table that writes a file for every few folds."""
    return open_table(folder, cache_bytes=64 * 1024, write_buffer_bytes=64 * 1024)


def store(table: RocksTable, changes: Mapping[str, Mapping[str, bytes | None]]) -> None:
    """One fold's changes."""
    applied = table.progress.applied + 1
    table.apply(keyed(changes), offset=applied, applied=applied, tail=None, now_ms=0)


def filled(folder: Path, erasable: int) -> tuple[RocksTable, list[str]]:
    """Entities with the canary among others, written over many files and written over; gives the former's names."""
    table = opened(folder)
    names = [f"s-{100 + n}-{CANARY}" for n in range(erasable)]
    for n in range(OTHERS):
        text = f"{CANARY} {n} ".encode() * 20
        parts = {"head": b"of another" + bytes(200), "b0": b"said" + bytes(range(256))}
        store(table, {f"s-{n}": parts, names[n % erasable]: {"head": text, f"b{n % 7}": text}})
    return table, names


def deleted(table: RocksTable, names: list[str], offset: int) -> None:
    """An erasure as the fold writes it."""
    changes: dict[str, dict[str, bytes | None]] = {name: dict.fromkeys(table.entities[name]) for name in names}
    store(table, changes | {PARTITION_ENTITY: {ERASED_PART: msgspec.msgpack.encode(offset)}})


def found_in(folder: Path) -> list[str]:
    """Files that hold the canary, as it is or as RocksDB logs it."""
    forms = [CANARY.encode(), CANARY.encode().hex().encode(), CANARY.encode().hex().upper().encode()]
    return [file.name for file in sorted(folder.iterdir()) if any(form in content(file) for form in forms)]


def content(file: Path) -> bytes:
    """What is in it; RocksDB removes files in the background."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


def others(table: RocksTable) -> int:
    """How many of the others are whole."""
    return sum(set(table.entities.get(f"s-{n}", ())) == {"head", "b0"} for n in range(OTHERS))


@pytest.mark.parametrize("erasable", [1, 3, 20])
def test_no_file_holds_what_was_erased(tmp_path: Path, erasable: int) -> None:
    """Neither values nor names, in data, manifest and log; at once, after another write, and closed and opened."""
    table, names = filled(tmp_path / "0", erasable)
    deleted(table, names, 5)
    assert found_in(tmp_path / "0") != []
    table.forget([*names, PARTITION_ENTITY])

    assert (found_in(tmp_path / "0"), others(table), len(table.entities)) == ([], OTHERS, OTHERS + 1)
    store(table, {"s-0": {"head": b"next"}})
    table.close()
    table = opened(tmp_path / "0")
    assert (found_in(tmp_path / "0"), others(table), table.progress.applied) == ([], OTHERS, OTHERS + 2)
    table.close()


def test_what_was_replaced_goes_too(tmp_path: Path) -> None:
    """A session's turns leave a user who stays: the places are written anew, the old bytes must not remain."""
    table = opened(tmp_path / "0")
    for n in range(50):
        store(table, {"u": {"head": b"u", f"t{n}": f"{CANARY} {n}".encode() * 50}})
    parts: dict[str, bytes | None] = {f"t{n}": b"" for n in range(50)}
    store(table, {"u": parts, PARTITION_ENTITY: {ERASED_PART: b"\x05"}})
    table.forget(["u", PARTITION_ENTITY])

    assert (found_in(tmp_path / "0"), len(table.entities["u"])) == ([], 51)
    table.close()


def test_killed_before_the_end_it_is_done_when_the_table_is_recovered(tmp_path: Path) -> None:
    """The same behind another worker's erasure, which is read from the changelog; once, and without names."""
    table, names = filled(tmp_path / "0", 2)
    deleted(table, names, 5)
    table.close()
    table = opened(tmp_path / "0")

    assert rewritten(table)
    assert (found_in(tmp_path / "0"), others(table)) == ([], OTHERS)
    assert not rewritten(table)
    table.close()
    table = opened(tmp_path / "0")
    assert not rewritten(table)
    table.close()


def rewritten(table: RocksTable) -> bool:
    """Whether a recovered table is opened anew to give up what was erased."""
    before = table._db
    table.forget()
    return table._db is not before


def test_tables_that_nobody_goes_on_with_are_dropped(tmp_path: Path) -> None:
    """Too old and held by nobody; what is held, here or elsewhere, and what is young stays."""
    for name in ("old", "young"):
        opened(tmp_path / name).close()
    held = opened(tmp_path / "held")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "CURRENT").write_text("nothing")
    for name in ("old", "held", "damaged"):
        os.utime(tmp_path / name, (1_000, 1_000))
    drop_outdated(tmp_path, timedelta(hours=12), now_s=(tmp_path / "young").stat().st_mtime + 60)
    drop_outdated(tmp_path / "none", timedelta(hours=12), now_s=0)

    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["held", "young"]
    store(held, {"s": {"head": b"still there"}})
    held.close()


@pytest.mark.parametrize("store", ["rocksdb", "memory"])
async def test_a_recovery_drops_what_moved_to_other_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Literal["rocksdb", "memory"]
) -> None:
    """What was erased there since must not stay on this disk; and a partition that moved is no longer shown."""
    dropped: list[Path] = []
    forgotten: list[int] = []
    monkeypatch.setattr("streams.state.rocksdb.drop_outdated", lambda parent, *_, **__: dropped.append(parent))
    monkeypatch.setattr(metrics, "forget_partition", forgotten.append)
    monkeypatch.setattr("streams.state.table.Recovery.run", AsyncMock(return_value={}))
    settings = Settings(data_dir=tmp_path, state=StateSettings(store=store))
    table = StateTable(settings, "state", AsyncMock())
    await table.recover([0, 1])
    await table.recover([1])
    moved = list(forgotten)
    table.close()

    assert dropped == [tmp_path / "state" / "state"] * (2 if store == "rocksdb" else 0)
    assert (moved, forgotten) == ([0], [0, 1])
