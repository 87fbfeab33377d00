"""Fine-tuning of the second reader: what of it needs no PyTorch; and that whoever lacks it is told."""

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from jobs.cli import _missing
from jobs.lab.train import reader
from jobs.lab.train.scorer import own_pairs
from models.risk.reader_file import ReaderFile, read_reader
from streams.inference.onnx_embedder import is_fetched
from streams.inference.trained_scorer import SHIPPED_READER
from tests.support.command_line import turntide

PAIRS = own_pairs()[:50]


def test_every_pair_is_shown_once_beside_pairs_of_its_length() -> None:
    """In an order that another draw changes, and the same one does not."""
    lengths = np.repeat([9, 900], 30)

    first, again = (list(reader.batches(lengths, np.random.default_rng(1))) for _ in range(2))
    other = list(reader.batches(lengths, np.random.default_rng(2)))

    assert sorted(np.concatenate(first)) == list(range(60))
    assert sum(len(set(lengths[rows])) > 1 for rows in first) == 1
    assert np.array_equal(np.concatenate(first), np.concatenate(again))
    assert not np.array_equal(np.concatenate(first), np.concatenate(other))


def test_readings_are_scaled_by_what_they_were() -> None:
    """Median 0 and deviation 2 where they are taken, in the same order of texts."""
    means = np.random.default_rng(0).normal(size=(200, 384)).astype(np.float32)
    head = np.linspace(-1, 1, 384, dtype=np.float32)
    file = ReaderFile(version="r", model=b"", changes=[], head=head.tobytes(), offset=3.0, weight=1)
    before = means @ head + file.offset

    made = reader.scaled(file, before.tolist())
    after = means @ np.frombuffer(made.head, np.float32) + made.offset

    assert (np.median(after), after.std()) == (pytest.approx(0, abs=1e-4), pytest.approx(reader.SPREAD))
    assert np.corrcoef(before, after)[0, 1] == pytest.approx(1)


def test_pairs_are_in_order_where_the_harmful_half_reads_higher() -> None:
    """The halves stand side by side, the harmful one first."""
    assert reader.halves_of(PAIRS)[2:4] == [PAIRS[1].harmful, PAIRS[1].benign]
    assert reader.in_order([1.0, 0.0, 0.0, 0.0, -1.0, -2.0, 0.0, 1.0]) == 0.5


def test_who_lacks_pytorch_is_told_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing is written."""
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr("jobs.lab.train.reader.e5_files", lambda: (b"", b""))

    said = turntide("lab", "train", "reader", "--to", str(tmp_path / "mine.reader"))

    assert isinstance(said.exception, ModuleNotFoundError)
    assert "install `turntide[train-reader]`" in str(_missing("lab train reader", said.exception))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not (find_spec("torch") and is_fetched()), reason="no extra `train-reader`, or e5 is not fetched")
def test_what_is_learnt_is_a_reader() -> None:
    """It changes the same places of e5's file as the shipped one, and knows some of what it was shown."""
    done: list[tuple[int, int]] = []
    made = reader.trained_reader(PAIRS, "r-2", lambda *at: done.append(at), epochs=2, seed=1)
    shipped = read_reader(SHIPPED_READER.read_bytes())

    assert (made.name[:4], done[0], done[-1]) == ("r-2@", (1, 6), (6, 6))
    assert [(each.scales_at, each.weights_at) for each in made.file.changes] == [
        (each.scales_at, each.weights_at) for each in shipped.changes
    ]
    assert reader.in_order(made.readings(reader.halves_of(PAIRS))) > 0.6
