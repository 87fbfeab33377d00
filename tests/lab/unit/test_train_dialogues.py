"""Labelled files: what is read of them, what their errors say, and what they keep to themselves."""

import gzip
import traceback
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from jobs.escalation.backtest.judging import labelled_traffic
from jobs.lab.train.scorer import own_dialogues, own_pairs
from jobs.shared.dialogues import (
    DialogueTurn,
    LabelledDialogue,
    families,
    read_dialogues,
    read_pools,
    turns_of_dialogue,
)
from models.errors import ConfigurationError
from models.events import Role
from tests.support.labelled_dialogues import as_file, made_up, spoken

CONFIDED = "it's a secret - at `$.label`,\nand it stays one"


def line(**changed: object) -> bytes:
    """A dialogue as a line, with some fields changed."""
    fields: dict[str, object] = {
        "session_id": "s",
        "source": "ferries",
        "label": "benign",
        "turns": [{"role": "user", "content": "Good morning."}],
    }
    return msgspec.json.encode(fields | changed)


def test_a_file_comes_back_in_its_order(tmp_path: Path) -> None:
    """Blank lines, line ends of Windows and fields that nobody knows are passed over."""
    dialogues = made_up()
    file = as_file(tmp_path / "d.jsonl", dialogues)
    file.write_bytes(b"\n" + file.read_bytes().replace(b"\n", b"\r\n\n") + line(session_id="last", kind="test"))

    found = read_dialogues(file)

    assert found[:-1] == dialogues
    assert found[-1].session_id == "last"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (line(label=CONFIDED), "none of the values allowed at `$.label`"),
        (line(turns=[{"role": CONFIDED, "content": CONFIDED}]), "none of the values allowed at `$.turns[0].role`"),
        (line(turns=CONFIDED), "Expected `array`, got `str` - at `$.turns`"),
        (line(turns=[]), "length >= 1"),
        (line(turns=[{"role": "user"}]), "missing required field `content`"),
        (line(turns=[{"role": "user", "content": CONFIDED, "turn": -1}]), ">= 0 - at `$.turns[0].turn`"),
        (line(session_id=""), "length >= 1 - at `$.session_id`"),
        (line(turns=[{"role": "user", "content": CONFIDED}])[:-4], "is not a labelled dialogue"),
        (line(source=CONFIDED) + b"\xff", "is not a labelled dialogue"),
        (line(source="x").replace(b"Good", b"\xff\xfe"), "is not a labelled dialogue"),
        (b'"' + CONFIDED.encode().replace(b"\n", b" ") + b'"', "is not a labelled dialogue"),
    ],
)
def test_an_error_names_its_line_and_holds_nothing_that_was_said(tmp_path: Path, wrong: bytes, said: str) -> None:
    """Not in its message, nor in the errors behind it, which a traceback would show."""
    file = tmp_path / "d.jsonl"
    file.write_bytes(b"\n" + line(session_id="first") + b"\n" + wrong)
    with pytest.raises(ConfigurationError) as raised:
        read_dialogues(file)

    assert said in str(raised.value)
    assert str(raised.value).startswith(f"{file}, line 3 ")
    assert "secret" not in "".join(traceback.format_exception_only(raised.value))
    assert raised.value.__suppress_context__


def test_a_pool_teaches_by_families_of_both_labels(tmp_path: Path) -> None:
    """Packed or not; one label alone is passed over, unless the other is beside it; relatives are one family."""
    rows = [("red", "harmful"), ("red_wrapped", "benign"), ("aims", "harmful"), ("hh_rest", "harmful")]
    lines = [
        msgspec.json.encode({"family": name, "label": label, "licence": "MIT", "turns": ["Hello.", "Why?"]})
        for name, label in rows
    ]
    file = tmp_path / "pool.jsonl.gz"
    file.write_bytes(gzip.compress(b"\n".join(lines)))
    found = read_pools([file], [spoken("1", "hh_helpful", "a")])

    assert ["red_harmful", "red_wrapped_benign", "hh_rest_harmful"] == [each.source for each in found]
    assert families(found) == ["hh", "red"]
    assert (found[0].escalating, found[0].said_by_user) == (True, ["Hello.", "Why?"])


def test_nothing_to_read_is_said(tmp_path: Path) -> None:
    """No file, no dialogue in it, one that comes twice, or a packed file that is damaged or cut."""
    packed = gzip.compress(line())
    for damaged in (packed[:10] + b"\xff" + packed[11:], packed[:-9], b"plain"):
        (tmp_path / "d.jsonl.gz").write_bytes(damaged)
        with pytest.raises(ConfigurationError, match=r"cannot read .*d\.jsonl\.gz"):
            read_dialogues(tmp_path / "d.jsonl.gz")
    with pytest.raises(ConfigurationError, match=r"cannot read .*missing\.jsonl: No such file"):
        read_dialogues(tmp_path / "missing.jsonl")
    for content, said in ((b"\n \n", "has no dialogue"), (line() + b"\n" + line(), "line 2: session_id s is repeated")):
        (tmp_path / "d.jsonl").write_bytes(content)
        with pytest.raises(ConfigurationError, match=said):
            read_dialogues(tmp_path / "d.jsonl")


def test_turns_are_numbered_by_the_file_or_by_their_place() -> None:
    """All from 0 where one has no number; in a training they stand apart, and no number is a duplicate."""
    numbered = LabelledDialogue(
        "a", "s", "benign", [DialogueTurn(Role.USER, "x", 3), DialogueTurn(Role.ASSISTANT, "y", 5)]
    )
    half = LabelledDialogue("b", "s", "benign", [DialogueTurn(Role.USER, "x", 3), DialogueTurn(Role.ASSISTANT, "y")])
    sent = [msgspec.json.decode(record.value or b"") for record in labelled_traffic("d", [numbered, half]).records]

    assert [each["turn"] for each in sent if each["type"] == "turn"] == [3, 5, 0, 1]

    twice = LabelledDialogue("a", "s", "benign", [DialogueTurn(Role.USER, "x", 3), DialogueTurn(Role.USER, "y", 3)])
    first, second = turns_of_dialogue(twice)

    assert (first.turn, second.turn) == (0, 1)
    assert second.timestamp - first.timestamp == timedelta(minutes=1)


def test_what_is_not_known_to_be_free_may_not_ship() -> None:
    """Weights learnt from it would carry its terms."""
    free = ["MIT", "Apache-2.0+RUA", "CC-BY-4.0"]
    others = [
        "CC-BY-SA-4.0",
        "CC BY-NC 4.0",
        "GPL-3.0",
        "CC-BY-4.0 AND CC-BY-NC-4.0",
        "MIT (non-commercial)",
        "unknown",
        "",
    ]

    assert [each for each in free + others if spoken("1", "s", "a", licence=each).may_ship] == free


def test_both_sides_of_one_hand_are_one_family() -> None:
    """By the end of the name; a name without one is a family of its own."""
    named = ["hh_harmless", "hh_helpful", "red_attack", "red_attacks", "trec_cast", "safe_words"]

    assert families([spoken(name, name, "a") for name in named]) == ["hh", "red", "safe_words", "trec_cast"]


def test_own_texts_are_there_and_each_once() -> None:
    """Both labels, a free licence, and pairs whose halves differ."""
    dialogues, pairs = own_dialogues(), own_pairs()

    assert {dialogue.escalating for dialogue in dialogues} == {True, False}
    assert all(dialogue.own and dialogue.may_ship and dialogue.said_by_user for dialogue in dialogues)
    assert len({pair.harmful for pair in pairs}) == len(pairs)
    assert all(pair.harmful != pair.benign for pair in pairs)
