"""`turntide lab eval facts`: its labelled set, matching and figures on cases counted by hand, its command."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from jobs.lab.eval.facts import (
    Extract,
    LabelledFact,
    LabelledMessage,
    LabelledRetraction,
    Split,
    measure,
    read_messages,
    same_value,
)
from jobs.lab.eval.scores import ScoreFigures
from models.events.user import ExtractedFact, FactCategory, Retraction
from models.language.facts.extraction import Extraction
from models.policy import Policy
from tests.support.command_line import printed, refused, turntide

IDENTITY, PREFERENCE, INSTRUCTION = FactCategory.IDENTITY, FactCategory.PREFERENCE, FactCategory.INSTRUCTION


def found_of(*facts: ExtractedFact, retractions: tuple[Retraction, ...] = ()) -> Extraction:
    """What a made-up extractor finds."""
    return Extraction(list(facts), list(retractions))


def fact(
    category: FactCategory, key: str, value: str, confidence: float = 1.0, importance: float = 0.8
) -> ExtractedFact:
    """A fact as an extractor gives it."""
    return ExtractedFact(category=category, key=key, value=value, confidence=confidence, importance=importance)


def message(
    content: str, *facts: LabelledFact, retractions: tuple[LabelledRetraction, ...] = (), split: Split = "dev"
) -> LabelledMessage:
    """A labelled message whose text is its id."""
    return LabelledMessage(content, split, "fact" if facts else "detail", content, list(facts), list(retractions))


def extractor(found: Mapping[str, Extraction]) -> Extract:
    """Finds what the table says, and nothing elsewhere."""
    return lambda content: found.get(content, Extraction())


def test_own_set_is_large_mostly_hard_and_split_alike() -> None:
    """Each message once; of each kind between half and four fifths to write rules by; half of the rest says nothing."""
    messages = read_messages()
    held_out = [each for each in messages if each.split == "test"]
    of_kind, dev = (Counter(m.kind for m in messages if m.split in splits) for splits in ({"dev", "test"}, {"dev"}))
    by_category = Counter((each.split, label.category) for each in messages for label in each.facts)

    assert len(messages) >= 599
    assert sum(not (each.facts or each.retractions) for each in messages) >= 269
    assert len({each.content.casefold() for each in messages}) == len(messages)
    assert {kind for kind in of_kind if not 0.5 <= dev[kind] / of_kind[kind] <= 0.8} == set()
    assert (len(held_out), sum(not (each.facts or each.retractions) for each in held_out)) == (170, 84)
    assert (len(by_category), min(by_category.values()) >= 10) == (2 * len(FactCategory), True)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("The Paper Lanterns", "paper lanterns!", True),
        ("black with line length 100", "black", True),
        ("gluten-free", "gluten free", True),
        ("three daughters", "3", True),
        ("likes", "dislikes", False),
        ("Al", "Alexander", False),
        ("UTC+2", "UTC-2", False),
        ("new paper", "paper new", False),
        ("Oslo", "the", False),
    ],
)
def test_values_agree_word_by_word(one: str, other: str, same: bool) -> None:
    """Case, articles and punctuation do not count; parts of words do not match; the order is the same either way."""
    assert (same_value(one, other), same_value(other, one)) == (same, same)


def test_figures_are_those_counted_by_hand() -> None:
    """Two right, one missed, one with a wrong key: precision 2/3, recall 2/3."""
    messages = [
        message("a", LabelledFact(IDENTITY, "name", "Mira"), LabelledFact(PREFERENCE, "language", "Python")),
        message("b", LabelledFact(IDENTITY, "location", "Oslo"), split="test"),
        message("c"),
    ]
    found = {
        "a": found_of(fact(IDENTITY, "name", "mira"), fact(PREFERENCE, "language", "Python 3")),
        "b": found_of(fact(IDENTITY, "hometown", "Oslo")),
    }
    report = measure(messages, Policy(), extractor(found))

    assert (report["precision"], report["recall"], report["f1"]) == (2 / 3, 2 / 3, 2 / 3)
    assert report["by_category"]["identity"] == ScoreFigures(0.5, 0.5, 0.5, 2, 2)
    assert report["by_category"]["instruction"] == ScoreFigures(None, None, None, 0, 0)
    assert report["by_split"] == {"dev": ScoreFigures(1.0, 1.0, 1.0, 2, 2), "test": ScoreFigures(0.0, 0.0, 0.0, 1, 1)}
    assert [(miss["id"], miss["missed"], miss["wrong"]) for miss in report["misses"]] == [
        ("b", ["identity/location=Oslo"], ["identity/hometown=Oslo"])
    ]


RUN_TESTS = "run the tests before committing"
OPEN_KEY = [LabelledFact(INSTRUCTION, None, RUN_TESTS), LabelledFact(INSTRUCTION, "emojis", RUN_TESTS)]
MIRA = fact(IDENTITY, "name", "Mira")


@pytest.mark.parametrize(
    ("labels", "found", "precision", "recall"),
    [
        # Below the policy's confidence or importance a fact is neither right nor wrong.
        ([LabelledFact(IDENTITY, "name", "Mira")], [fact(IDENTITY, "name", "Mira", confidence=0.39)], None, 0.0),
        ([], [fact(IDENTITY, "name", "Bo", importance=0.19)], None, None),
        ([], [fact(IDENTITY, "name", "Cy", confidence=0.4, importance=0.2)], 0.0, None),
        # A label without a key does not take the fact that another label names.
        (OPEN_KEY, [fact(INSTRUCTION, key, f"always {RUN_TESTS}") for key in ("emojis", "tests")], 1.0, 1.0),
        # Each label is found once.
        ([LabelledFact(IDENTITY, "name", "Mira")], [MIRA, MIRA], 0.5, 1.0),
    ],
)
def test_a_fact_takes_one_label_if_it_would_be_stored(
    labels: list[LabelledFact], found: list[ExtractedFact], precision: float | None, recall: float | None
) -> None:
    """And is right or wrong by that."""
    report = measure([message("a", *labels)], Policy(), extractor({"a": found_of(*found)}))

    assert (report["precision"], report["recall"]) == (precision, recall)
    assert report["negatives_clean"] == (None if labels else float(precision is None))


def test_retractions_are_counted_apart_and_spoil_negatives() -> None:
    """Everything (no category, no key) is a retraction of its own, not a wildcard."""
    labels = [
        message("a", retractions=(LabelledRetraction(None, None),)),
        message("b", retractions=(LabelledRetraction(IDENTITY, "address"),)),
        message("c"),
    ]
    found = {
        "a": found_of(retractions=(Retraction(),)),
        "b": found_of(retractions=(Retraction(),)),
        "c": found_of(retractions=(Retraction(category=IDENTITY, key="name"),)),
    }
    report = measure(labels, Policy(), extractor(found))

    assert report["retractions"] == ScoreFigures(1 / 3, 0.5, 0.4, 2, 3)
    assert (report["found"], report["negatives"], report["negatives_clean"]) == (0, 1, 0.0)
    assert [miss["wrong"] for miss in report["misses"]] == [["-*/*"], ["-identity/name"]]


@pytest.mark.parametrize(
    ("command", "split", "wanted"),
    [
        ("facts", "dev", {"precision", "recall", "f1", "by_category", "by_kind", "retractions"}),
        ("extraction", "rare", {"all", "held_out", "by_type", "by_difficulty", "subjects", "f1_ratio"}),
    ],
)
def test_command_prints_the_figures_of_a_split(command: str, split: str, wanted: set[str]) -> None:
    """JSON has what a reader of the issue looks for, and the machine; misses only if asked for."""
    found = printed("eval", command, "--split", split)

    assert wanted | {"messages", "machine"} <= found.keys()
    assert (list(found["by_split"]), "misses" in found) == ([split], False)


@pytest.mark.parametrize("command", [("facts", "--data"), ("extraction",)])
def test_a_file_without_messages_of_the_split_is_refused(command: tuple[str, ...], tmp_path: Path) -> None:
    """Figures of nothing are none."""
    (tmp_path / "labels.jsonl").write_text("")

    assert "no labelled message of split dev" in refused(
        "eval", *command, str(tmp_path / "labels.jsonl"), "--split", "dev"
    )


def test_command_shows_misses_as_rows(tmp_path: Path) -> None:
    """A label that no rule can find comes out with its message."""
    file = tmp_path / "labels.jsonl"
    label = {"category": "identity", "key": "name", "value": "Nobody"}
    row = {"id": "1", "split": "test", "kind": "fact", "content": "The tide is out.", "facts": [label]}
    file.write_text(json.dumps(row | {"retractions": []}))
    shown = turntide("eval", "facts", "--data", str(file), "--show-misses", "--output", "csv")

    assert shown.stdout.splitlines() == [
        "id,kind,message,missed,wrong",
        "1,fact,The tide is out.,identity/name=Nobody,",
    ]
