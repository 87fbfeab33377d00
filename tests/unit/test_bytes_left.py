"""The search of a broker's files finds what is in compressed batches, also behind damage."""

from pathlib import Path

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
