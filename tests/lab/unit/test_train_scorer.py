"""Training: the same bytes each time, nothing of what is left out, and minima that are minima."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs
from sklearn.linear_model import LogisticRegression
from typer.testing import Result

from jobs.lab.train.scorer import (
    ALERT_PROBABILITY,
    PRIOR,
    TARGET_FALSE_ALARMS,
    LabelledSessions,
    Trainer,
    fit_combination,
    own_dialogues,
    own_pairs,
    source_weights,
)
from jobs.lab.train.turns import logistic
from jobs.shared.dialogues import LabelledDialogue
from models.errors import ConfigurationError
from models.events import Role
from models.risk.combination import UNITS, probability_of
from models.risk.sequence import SIGNAL_NAMES
from models.risk.turn_model import ModelCard, read_model, write_model
from tests.support.command_line import turntide
from tests.support.labelled_dialogues import as_file, made_up, retold, spoken
from tests.support.loaded import loaded_embedder

CARD = ModelCard(trained_on="2026-01-05", seed=1, sources=[], base_rate=0.0)
PAIRS = own_pairs()[::100]


def trainer_of(dialogues: Sequence[LabelledDialogue]) -> Trainer:
    """With a few own pairs."""
    return Trainer(dialogues, PAIRS, loaded_embedder())


@cache
def of_made_up() -> Trainer:
    """The one that most tests share: it remembers its weights."""
    return trainer_of(made_up())


def file_of(trainer: Trainer, *without: str) -> bytes:
    """The file that comes of it."""
    return write_model(trainer.train("test-1", CARD, without))


def test_the_same_data_give_the_same_bytes() -> None:
    """By another trainer, and by one that trained something else before."""
    file_of(of_made_up(), "red")

    assert file_of(of_made_up()) == file_of(trainer_of(made_up()))


@pytest.mark.parametrize("source", ["red_attack", "clinic"])
def test_nothing_is_learnt_from_a_family_that_is_left_out(source: str) -> None:
    """Its texts can be any; where it is not left out they matter."""
    other, family = trainer_of(retold(made_up(), source)), source.partition("_")[0]

    assert file_of(of_made_up(), family) == file_of(other, family)
    assert file_of(of_made_up()) != file_of(other)


def test_left_out_is_as_never_there() -> None:
    """A file without a family is that of others alone."""
    others = [dialogue for dialogue in made_up() if dialogue.family != "red"]

    assert file_of(of_made_up(), "red") == file_of(trainer_of(others))


def test_own_dialogues_and_dialogues_without_user_teach_no_turn_weights() -> None:
    """Own ones serve the combination alone; where no user speaks there is nothing to learn."""
    own = own_dialogues()[::60]
    silent = spoken("silent", "red_attack", "How may I help?", escalating=True, role=Role.ASSISTANT)
    beside = trainer_of([*made_up(), *own, silent])

    assert len(beside.dialogues) == len(made_up()) + len(own)
    assert np.array_equal(of_made_up().weights(()), beside.weights(()))


def test_the_card_says_what_was_learnt_from() -> None:
    """Each source with its label or both, its licences, and how much there is of it."""
    both = [structs.replace(each, source="mixed", licence="MIT" if each.escalating else "") for each in made_up()[:8]]
    card = trainer_of([*both, *made_up()[8:]]).train("test-1", CARD).card
    rows = {source.name: source for source in card.sources}

    assert sorted(rows) == ["clinic", "mixed", "slow_attack", "slow_benign"]
    assert (rows["mixed"].label, rows["mixed"].licence, rows["mixed"].dialogues) == (
        "benign and escalating",
        ", MIT",
        8,
    )
    assert rows["clinic"].turns == sum(len(each.said_by_user) for each in made_up() if each.source == "clinic")
    assert 0.0 < card.base_rate < 1.0


def test_the_turn_scorer_stands_where_its_loss_is_least() -> None:
    """Scikit-learn finds the same place."""
    drawn = np.random.default_rng(1)
    rows, weights = drawn.normal(size=(80, 5)), drawn.uniform(0.1, 3.0, 80)
    wanted = rows[:, 0] + drawn.normal(size=80) > 0
    found = logistic(rows, wanted, weights, 2.0)
    theirs = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-8).fit(rows, wanted, sample_weight=weights)

    assert found == pytest.approx(theirs.coef_[0], abs=1e-3)


def sessions(count: int = 200) -> LabelledSessions:
    """Two sources of either label; the level tells them apart, instructions say the opposite of what they should."""
    drawn = np.random.default_rng(3)
    rows, labels, sources = [], [], []
    for n in range(count):
        escalating = n % 2 == 0
        signals = drawn.uniform(0.0, 0.3, (4, len(SIGNAL_NAMES)))
        signals[-1, SIGNAL_NAMES.index("level")] = drawn.uniform(0.4, 1.0) if escalating else drawn.uniform(0.0, 0.6)
        signals[-1, SIGNAL_NAMES.index("instructions")] = 0.0 if escalating else 1.0
        rows.append(signals)
        labels.append(escalating)
        sources.append(("red_attack" if n % 3 else "slow_attack") if escalating else ("calm" if n % 5 else "clinic"))
    return LabelledSessions(rows, np.array(labels), sources)


def test_the_threshold_alerts_on_as_many_benign_sessions_as_it_may() -> None:
    """Each source weighing the same, counted anew from the whole numbers that a file holds."""
    given = sessions()
    combination, base_rate = fit_combination(given)
    weights = np.array([combination.weights.get(name, 0) for name in SIGNAL_NAMES])
    highest = [probability_of(round(combination.base + float((rows @ weights).max()))) for rows in given.signals]
    alarms: dict[str, list[bool]] = {}
    for score, escalating, source in zip(highest, given.escalating, given.source, strict=True):
        if not escalating:
            alarms.setdefault(source, []).append(score >= ALERT_PROBABILITY)
    share = float(np.mean([np.mean(each) for each in alarms.values()]))

    # One session of the smaller source is 1 / 20 of it, and half as much of the mean.
    assert share == pytest.approx(TARGET_FALSE_ALARMS, abs=0.026)
    assert 0.0 < base_rate < 1.0


def test_weights_are_never_negative_and_move_with_the_data() -> None:
    """A signal that tells the labels apart gains on its prior; one that says the opposite counts nothing."""
    weights = fit_combination(sessions())[0].weights
    scale = weights["information_gathering"] / PRIOR["information_gathering"]

    assert min(weights.values()) > 0
    assert weights["level"] / scale > PRIOR["level"]
    assert weights["instructions"] / scale < PRIOR["instructions"]
    assert all(isinstance(weight, int) and weight < 100 * UNITS for weight in weights.values())


def test_both_labels_weigh_the_same_and_a_source_by_the_root_of_its_size() -> None:
    """By hand: sources of four and of one, against one of two."""
    source = ["a", "a", "a", "a", "b", "c", "c"]
    weights = source_weights(source, np.array([True] * 5 + [False] * 2))

    assert weights == pytest.approx([1 / 12] * 4 + [1 / 6] + [1 / 4] * 2)


@pytest.fixture
def little_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that learns from a few own texts beside the file's."""
    own = own_dialogues()[::60]
    monkeypatch.setattr("jobs.lab.train.scorer.own_dialogues", lambda: own)
    monkeypatch.setattr("jobs.lab.train.scorer.own_pairs", lambda: PAIRS)


def train(data: Path, *options: str) -> Result:
    """Run the command in this process; the file is written beside the data."""
    to = data.with_suffix(".scorer")
    arguments = ["train", "scorer", "--data", str(data), "--to", str(to), "--date", "2026-01-05", *options]
    return turntide(*arguments)


def shared_alike(source: str) -> list[LabelledDialogue]:
    """The made-up dialogues, one source of them under a share-alike licence."""
    return [structs.replace(each, licence="CC-BY-SA-4.0") if each.source == source else each for each in made_up()]


@pytest.mark.usefixtures("little_of_its_own")
def test_share_alike_sources_are_not_learnt_from_unless_asked_for(tmp_path: Path) -> None:
    """The command writes what it would without them, to the byte."""
    data = shared_alike("clinic")
    given = as_file(tmp_path / "given.jsonl", data)
    lacking = as_file(tmp_path / "lacking.jsonl", [each for each in data if each.source != "clinic"])
    for file in (given, lacking):
        assert train(file, "--no-measure").exit_code == 0
    without = given.with_suffix(".scorer").read_bytes()

    assert without == lacking.with_suffix(".scorer").read_bytes()
    assert train(given, "--no-measure", "--any-licence").exit_code == 0
    with_it = read_model(given.with_suffix(".scorer").read_bytes(), "it").file.card
    assert "clinic" in {source.name for source in with_it.sources}


@pytest.mark.usefixtures("little_of_its_own")
def test_a_measured_file_has_figures_of_every_source_share_alike_ones_too(tmp_path: Path) -> None:
    """The card's figures are of families left out; they change no weight."""
    data = as_file(tmp_path / "d.jsonl", shared_alike("clinic"))
    assert train(data, "--no-measure").exit_code == 0
    plain = read_model(data.with_suffix(".scorer").read_bytes(), "it").file
    result = train(data)
    assert result.exit_code == 0, result.exception
    measured = read_model(data.with_suffix(".scorer").read_bytes(), "it").file

    assert (measured.turn, measured.base, measured.weights) == (plain.turn, plain.base, plain.weights)
    assert plain.card.measured == {}
    assert measured.card.measured["clinic.dialogues"] == 4
    assert measured.card.measured["dialogues"] == len(made_up())
    assert measured.card.measured["roc_auc_low"] <= measured.card.measured["roc_auc"]
    assert "recall_at_fpr_0.05" in result.stdout


@pytest.mark.usefixtures("little_of_its_own")
@pytest.mark.parametrize(
    ("dialogues", "options", "said"),
    [
        ([spoken("1", "calm", "Hello.")], [], "nothing escalating to learn from"),
        ([spoken("1", "red", "Hello.", escalating=True, licence="CC-BY-SA-4.0")], [], "see --any-licence"),
        ([spoken("1", "red", "Hello.", escalating=True)], [], "one family, red: .* by --no-measure"),
        ([spoken("1", "red", "Hello.", escalating=True)], ["--to", "no/such/folder/x.scorer"], "no folder"),
    ],
)
def test_data_that_teach_nothing_are_refused(
    tmp_path: Path, dialogues: list[LabelledDialogue], options: list[str], said: str
) -> None:
    """With what to do about it, and nothing is written."""
    result = train(as_file(tmp_path / "d.jsonl", dialogues), *options)

    assert isinstance(result.exception, ConfigurationError)
    assert re.search(said, str(result.exception))
    assert not (tmp_path / "d.scorer").exists()
