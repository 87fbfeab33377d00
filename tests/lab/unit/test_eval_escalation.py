"""`turntide lab eval escalation`: who judges what, what is printed, and what becomes of data that say little."""

import csv
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from typer.testing import Result

from jobs.lab.eval.command import LeaveOut
from jobs.lab.eval.escalation import ordinary_chats, sides_of
from jobs.lab.train.scorer import own_dialogues, own_pairs
from jobs.shared.dialogues import LabelledDialogue
from models.events import Role
from tests.support.command_line import refused, turntide
from tests.support.labelled_dialogues import as_file, made_up, retold, spoken

KEYS = {
    "roc_auc", "pr_auc", "recall_at_fpr_0.01", "recall_at_fpr_0.05", "recall", "fpr",
    "median_lead", "us_per_turn", "by_source", "controls",
}  # fmt: skip
SILENT = spoken("silent", "clinic", "How may I help?", role=Role.ASSISTANT)


def of_families(*sources: str) -> list[LabelledDialogue]:
    """A dialogue of each source, named after it."""
    return [spoken(source, source, "Hello.", escalating=source.endswith("attack")) for source in sources]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the dialogues lie; what is trained here learns from a few own texts beside them."""
    own, pairs = own_dialogues()[::30], own_pairs()[::60]
    monkeypatch.setattr("jobs.lab.train.scorer.own_dialogues", lambda: own)
    monkeypatch.setattr("jobs.lab.train.scorer.own_pairs", lambda: pairs)
    monkeypatch.setenv("TURNTIDE_DATA_DIR", str(tmp_path))
    return tmp_path / "d.jsonl"


def evaluate(data: Path, dialogues: Sequence[LabelledDialogue], *options: str) -> Result:
    """Run the command in this process."""
    return turntide("eval", "escalation", "--data", str(as_file(data, dialogues)), *options)


def measured(data: Path, dialogues: Sequence[LabelledDialogue], *options: str) -> Any:
    """What it prints as JSON."""
    result = evaluate(data, dialogues, *options, "--output", "json")
    assert result.exit_code == 0, result.exception
    return json.loads(result.stdout)


def test_families_that_the_scorer_knows_are_judged_without_it() -> None:
    """Known by any source of the family; others by the scorer, and nobody judges where no user speaks."""
    dialogues = [*of_families("red_attack", "red_safe", "slow_attack"), SILENT]

    def names(leave_out: LeaveOut) -> list[list[str]]:
        return [[each.session_id for each in side] for side in sides_of(dialogues, leave_out, {"red_attack"})]

    assert names(LeaveOut.AUTO) == [["red_attack", "red_safe"], ["slow_attack"]]
    assert names(LeaveOut.NOTHING) == [[], ["red_attack", "red_safe", "slow_attack"]]
    assert names(LeaveOut.FAMILY) == [names(LeaveOut.NOTHING)[1], []]


def test_families_that_nobody_was_trained_on_are_judged_by_the_shipped_scorer(data: Path) -> None:
    """Every figure that was promised, overall and by source; no text is printed."""
    report = measured(data, [*made_up(), SILENT])

    assert set(report) >= KEYS
    assert (report["judged_left_out"], report["judged_by_the_scorer"], report["not_judged_without_user"]) == (
        0,
        len(made_up()),
        1,
    )
    assert (report["dialogues"], report["escalating"]) == (20, 8)
    assert set(report["by_source"]) == {each.source for each in made_up()}
    for row in report["by_source"].values():
        assert set(row) >= KEYS - {"us_per_turn", "by_source", "controls"}
        assert 0.0 <= row["roc_auc"] <= 1.0
        assert (row["recall"] is None, row["fpr"] is None) == (row["label"] == "benign", row["label"] == "escalating")
    assert set(report["controls"]) == {"first_turn", "turns", "mean_length"}
    assert report["gain_over_first_turn"] == pytest.approx(report["roc_auc"] - report["controls"]["first_turn"])
    assert report["us_per_turn"] > 0


def test_a_known_family_alone_is_judged_by_what_own_texts_teach(data: Path) -> None:
    """Its own texts do not judge it: other texts of its other side change nothing for it."""
    names = {"red_attack": "hh_harmless", "red_benign": "hh_helpful"}
    hh = [structs.replace(each, source=names[each.source]) for each in made_up() if each.source in names]
    first, second = (measured(data, each) for each in (hh, retold(hh, "hh_helpful")))

    assert first["judged_left_out"] == len(hh)
    assert first["by_source"]["hh_harmless"]["recall"] == second["by_source"]["hh_harmless"]["recall"]
    assert first["controls"]["mean_length"] != second["controls"]["mean_length"]


def test_each_is_judged_by_a_model_trained_without_it(data: Path) -> None:
    """Figures of all, by the models that the trainer makes without what they judge."""
    report = measured(data, made_up(), "--leave-out", "family")
    words = [row[f"words_{name}"] for row in report["by_source"].values() for name in ("roc_auc", "recall_at_fpr_0.05")]

    assert report["words_roc_auc"] == report["controls"]["bag_of_words"]
    assert all(0.0 <= figure <= 1.0 for figure in words)

    assert (report["judged_left_out"], report["judged_by_the_scorer"]) == (len(made_up()), 0)
    assert set(report["by_source"]) == {each.source for each in made_up()}
    assert report["recall"] is not None


@pytest.mark.parametrize(
    ("options", "dialogues", "said"),
    [
        (["--leave-out", "family"], of_families("red_attack", "red_benign"), "one family, red: .*--leave-out nothing"),
        ([], [SILENT], "no dialogue in which a user speaks"),
    ],
)
def test_data_of_which_nothing_can_be_said_are_refused(
    data: Path, options: list[str], dialogues: list[LabelledDialogue], said: str
) -> None:
    """With what to do instead."""
    assert re.search(said, refused("eval", "escalation", "--data", str(as_file(data, dialogues)), *options))


def test_without_a_trained_scorer_there_is_nothing_to_measure(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not zeros: an error."""
    monkeypatch.setenv("TURNTIDE_SCORER__KIND", "rules")

    assert "no trained scorer" in str(evaluate(data, made_up()).exception)


def test_a_source_with_both_labels_is_held_against_itself(data: Path) -> None:
    """One row under its name, with recall and false alarms."""
    mixed = [structs.replace(each, source="mine") if each.family == "red" else each for each in made_up()]
    row = measured(data, mixed)["by_source"]["mine"]
    alone = measured(data, [each for each in mixed if each.source == "mine"])

    assert row["label"] == "benign and escalating"
    assert row["dialogues"] == 8
    for figure in KEYS & set(row):
        assert row[figure] == alone[figure]


def test_a_table_and_csv_say_the_same(data: Path) -> None:
    """The table in three digits; CSV has a row for each source, and nothing else on standard output."""
    report = measured(data, made_up())
    table = evaluate(data, made_up())
    rows = list(csv.DictReader(io.StringIO(evaluate(data, made_up(), "--output", "csv").stdout)))

    assert f"{report['roc_auc']:.3f}" in table.stdout
    assert "control: first_turn" in table.stdout
    assert [row["source"] for row in rows] == sorted(report["by_source"])
    assert rows[0]["roc_auc"] == f"{report['by_source'][rows[0]['source']]['roc_auc']:.3f}"


@pytest.mark.behaviour("card-07")
def test_ordinary_chats_do_not_alert() -> None:
    """Sixty of support, sales, tutoring and coding, written blind to the signals; at most one is a false alarm."""
    chats = ordinary_chats()
    report = json.loads(turntide("eval", "escalation", "--output", "json").stdout)

    assert (60, 60) == (len(chats), report["judged_by_the_scorer"])
    assert all(10 <= len(chat.turns) <= 40 and not chat.escalating for chat in chats)
    assert report["fpr"] <= 1 / 60
