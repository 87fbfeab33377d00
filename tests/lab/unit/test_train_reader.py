"""Fine-tuning of the second reader: what of it needs no PyTorch; and that whoever lacks it is told."""

import json
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from jobs.cli import _missing
from jobs.lab.train import distilled, reader
from jobs.lab.train.scorer import own_pairs
from streams.inference.onnx_embedder import is_fetched
from streams.inference.reader_file import DistilledFile, ReaderFile, read_fine_tuned, read_reader
from streams.inference.trained_scorer import shipped_reader
from streams.inference.wordllama import WordLlamaEmbedder
from streams.ports import Vectors
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
    shipped = read_fine_tuned(shipped_reader("e5"))

    assert (made.name[:4], done[0], done[-1]) == ("r-2@", (1, 6), (6, 6))
    assert [(each.scales_at, each.weights_at) for each in made.file.changes] == [
        (each.scales_at, each.weights_at) for each in shipped.changes
    ]
    assert reader.in_order(made.readings(reader.halves_of(PAIRS))) > 0.6


class _Counts:
    """A teacher that reads how often `dog` is said, and how often `cat` is not."""

    data = b""

    def readings(self, texts: Sequence[str], vectors: Vectors | None = None) -> list[float]:  # noqa: ARG002
        return [float(3 * text.count("dog") - 3 * text.count("cat")) for text in texts]


def test_what_another_reader_says_is_imitated() -> None:
    """Of texts that it has not seen too; its readings have the other's scale, and another version is another file."""
    done = list[tuple[int, int]]()
    texts = [f"{animal} number {n}" for n in range(300) for animal in ("dog", "cat", "fish")]

    made = distilled.distilled_from(texts, _Counts(), WordLlamaEmbedder(), "d-1", lambda *at: done.append(at))
    dog, fish, cat = made.readings(["a dog here", "a fish here", "a cat here"])

    assert dog > fish > cat
    assert np.std(made.readings(texts)) == pytest.approx(np.std(_Counts().readings(texts)), rel=0.01)
    assert (made.name[:4], done[-1]) == ("d-1@", (900, 900))


def test_distillation_reads_nothing_of_the_families_it_is_measured_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor what may not be shipped; the result is a reader's file."""
    monkeypatch.setattr("streams.inference.e5_reader.E5Reader", lambda _: _Counts())
    monkeypatch.setattr("jobs.lab.train.distilled.texts_of", lambda pooled: [t for d in pooled for t in d.said_by_user])
    turns = [{"turn": n, "role": "user", "content": f"a {animal} there"} for n, animal in enumerate(("dog", "cat"))]
    seen = {"session_id": "s", "source": "seen_benign", "label": "benign", "licence": "MIT", "turns": turns}
    (data := tmp_path / "data.jsonl").write_text(json.dumps(seen), "utf-8")
    pooled = [
        {"family": family, "label": "benign", "licence": licence, "turns": [f"a {animal} {n}"]}
        for family, licence in (("seen", "MIT"), ("other", "MIT"), ("closed", "unknown"))
        for animal in ("dog", "cat")
        for n in range(9)
    ]
    (texts := tmp_path / "pool.jsonl").write_text("\n".join(map(json.dumps, pooled)), "utf-8")

    said = turntide(
        *("lab", "train", "distilled", "--data", str(data), "--texts", str(texts)),
        *("--to", str(tmp_path / "mine.reader"), "--output", "json"),
    )

    assert said.exit_code == 0, said.output
    told = json.loads(said.stdout)
    assert (told["texts"], told["correlation_left_out"]) == (18, 1.0)
    assert isinstance(read_reader((tmp_path / "mine.reader").read_bytes()), DistilledFile)
