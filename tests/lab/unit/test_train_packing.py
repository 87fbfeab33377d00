"""`turntide lab train packing`: what its dictionary is made of, and that it is one."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from jobs.lab.train.packing import packed_texts
from jobs.lab.train.scorer import own_dialogues, own_pairs
from models.session.topics.packing import MessageEntry
from tests.support.command_line import printed, refused


def messages(texts: Sequence[bytes]) -> set[str]:
    """What is said in packed texts."""
    decoded = (msgspec.json.decode(text, type=list[MessageEntry]) for text in texts)
    return {entry.content for entries in decoded for entry in entries}


def test_nothing_harmful_is_learnt_from() -> None:
    """Every benign half of a pair is there, no harmful one, and no dialogue that escalates."""
    said = messages(packed_texts())
    talks = [{turn.content for turn in talk.turns} for talk in own_dialogues() if talk.escalating]

    assert {pair.benign for pair in own_pairs()} <= said
    assert said.isdisjoint(pair.harmful for pair in own_pairs())
    assert talks
    assert not any(talk <= said for talk in talks)


def test_the_command_writes_the_same_dictionary_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In zstd's own format; a folder that is not there is told of before."""
    texts = packed_texts()[::10]
    monkeypatch.setattr("jobs.lab.train.packing.packed_texts", lambda: texts)
    files = [tmp_path / name for name in ("one.dict", "other.dict")]
    told = [printed("train", "packing", "--to", str(file)) for file in files]
    one, other = (file.read_bytes() for file in files)

    assert (one, b"\x37\xa4\x30\xec") == (other, one[:4])
    assert [(str(file), len(one), len(texts)) for file in files] == [
        (each["file"], each["bytes"], each["texts"]) for each in told
    ]
    assert "there is no folder" in refused("train", "packing", "--to", str(tmp_path / "none" / "zstd.dict"))
