"""`turntide lab train statements`: what its messages must be, and that weights say what was learnt."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from jobs.lab.train.statements import WrittenMessage, embedded_once, measure, read_written, train
from models.errors import ConfigurationError
from streams.inference.statement_reader import TYPES, StatementReader
from streams.ports import Vectors


def embed(texts: Sequence[str]) -> Vectors:
    """A vector for each text that says nothing of it."""
    vectors = np.ones((len(texts), 8), np.float32)
    return vectors / np.float32(8**0.5)


def test_shipped_messages_are_many_by_many_manners_a_third_of_them_hard() -> None:
    """What the model card says of them; no message twice."""
    written = read_written()
    silent = [each for each in written if not each.states]

    assert len(written) == len({each.text for each in written}) >= 3_000
    assert len({each.manner for each in written}) >= 12
    assert len(silent) / len(written) > 1 / 3
    assert all(each.because for each in silent)
    assert {each.states for each in written} == {"", *(kind.value for kind in TYPES if kind)}


@pytest.mark.parametrize("line", ["chatty\tdecision\twe go", "chatty\twish\t\twe go"])
def test_a_wrong_line_is_named_by_its_number(tmp_path: Path, line: str) -> None:
    """And nothing is quoted of it."""
    file = tmp_path / "mine.tsv"
    file.write_text(f"manner\tstates\tbecause\ttext\nchatty\t\tjoke\tha\n{line}\n")
    with pytest.raises(ConfigurationError, match=r"mine\.tsv:3: ") as told:
        read_written(file)

    assert "we go" not in str(told.value)


def test_weights_as_whole_numbers_read_what_they_were_fitted_on() -> None:
    """Words alone tell these apart, through the file's own rounding."""
    words = ["chat", "settled", "likes", "must", "aims", "named", "steps", "holds"]
    written = [
        WrittenMessage("m", kind.value if kind else "", "", f"{word} {number}")
        for kind, word in zip(TYPES, words, strict=True)
        for number in range(12)
    ]
    reader = StatementReader(embed, train(written, embed([each.said for each in written])))
    best = reader.probabilities([each.said for each in written]).argmax(axis=1)

    assert best.tolist() == [each.place for each in written]


def test_each_way_of_reading_is_measured_on_manners_left_out() -> None:
    """With the bag of words beside, on the same messages; rules first, so that a reader never finds less."""
    written = [each for each in read_written() if each.manner in {"engineer", "family"}]
    figures = list(measure(written, embed([each.said for each in written]), embedded_once(embed), 0.7))
    left_out = {each["reader"]: each for each in figures if each["messages"] == "manners left out"}
    states = sum(bool(each.states) for each in written)

    assert ["rules", "rules, bag of words", "rules, second reader"] == list(left_out)
    assert {states} == {each["labelled"] for each in left_out.values()}
    assert all(each["recall"] >= left_out["rules"]["recall"] > 0 for each in left_out.values())
    assert {"manners left out", "test", "rare", "foreign"} == {each["messages"] for each in figures}
