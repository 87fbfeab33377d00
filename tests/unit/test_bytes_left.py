"""The search of files finds what is in compressed batches, also behind damage, and in whole Parquet files."""

import os
from errno import EIO
from pathlib import Path
from unittest.mock import Mock

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from tests.support.bytes_left import holding


def _batch(offset: int, said: str) -> bytearray:
    made = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=4,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 16,
    )
    made.append(offset, 0, b"key", said.encode() * 50, [("reason", f"head-{said}".encode())])
    built: bytearray = made.build()
    return built


def test_batches_behind_a_damaged_one_are_searched(tmp_path: Path) -> None:
    """Neither a batch with a wrong checksum, nor one cut short, nor empty room ends the search."""
    damaged = _batch(1, "lost")
    damaged[-1] ^= 0xFF
    parts = (_batch(0, "parcel"), damaged, bytes(100), _batch(2, "cut")[:70], _batch(3, "invoice"), bytes(100))
    segment = tmp_path / f"{0:020}.log"
    segment.write_bytes(b"".join(bytes(part) for part in parts))

    assert [segment.name] == holding(tmp_path, "parcelparcel") == holding(tmp_path, "invoiceinvoice")
    assert holding(tmp_path, "head-invoice") == [segment.name]
    assert holding(tmp_path, "absent") == []


def test_what_cannot_be_read_is_no_file_without_the_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that fails must not say that nothing is left."""
    (tmp_path / "vectors").write_bytes(b"a parcel")
    monkeypatch.setattr(os, "pread", Mock(side_effect=OSError(EIO, "the disk is broken")))

    with pytest.raises(OSError, match="the disk is broken"):
        holding(tmp_path, "parcel")
