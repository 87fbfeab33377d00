"""Policies with their scorers, held against one another."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from jobs.escalation.backtest import judging
from jobs.escalation.backtest.contenders import Contender, contenders_of
from jobs.escalation.backtest.judging import JudgingReplay, LabelledTraffic, judge, judged_left_out
from jobs.lab.train import scorer as training
from jobs.lab.train.scorer import own_dialogues, own_pairs
from jobs.shared.dialogues import LabelledDialogue
from models.errors import ConfigurationError
from models.policy import Policy
from models.risk.reading import READER
from streams.inference.trained_scorer import SHIPPED, TrainedScorer, combined, model_at, shipped_reader
from streams.inference.wordllama import WordLlamaEmbedder
from streams.ports import Embedder
from streams.settings import load_settings
from streams.wiring import scorer_of
from tests.support.backtest_sessions import labelled_file
from tests.support.command_line import printed, refused, turntide

EMBEDDER = WordLlamaEmbedder()
SHIPPED_MODEL = model_at(None)
JUDGING = combined(SHIPPED_MODEL, shipped_reader("distilled"))


def dialogues_file(file: Path, dialogues: list[LabelledDialogue], sources: dict[str, str]) -> Path:
    """The dialogues of these sources, under other source names."""
    return labelled_file(
        file, [(each.session_id, sources[each.source], each.label, each.said_by_user) for each in dialogues]
    )


def own(count: int, *sources: str) -> list[LabelledDialogue]:
    """So many dialogues of each of the project's own sources."""
    return [
        each
        for source in sources
        for each in [dialogue for dialogue in own_dialogues() if dialogue.source == source][:count]
    ]


def test_each_scorer_judges_by_its_own_combination_under_one_policy() -> None:
    """Rules have none: the source formulas judge. A file is the shipped one where its bytes are."""
    rules, shipped = contenders_of(load_settings(), [], ["rules", "shipped"], EMBEDDER)
    rules_too, file = contenders_of(load_settings(), [], ["rules", str(SHIPPED)], EMBEDDER)

    assert (rules.scorer.name, rules.policy.escalation.model, rules.base_rate) == ("rules", None, None)
    assert rules_too.policy == rules.policy
    assert shipped.policy.escalation.model == JUDGING == file.policy.escalation.model
    assert shipped.scorer.name == JUDGING.name
    assert shipped.base_rate == SHIPPED_MODEL.file.card.base_rate


def test_the_second_reader_stands_beside_a_scorer_that_is_named() -> None:
    """As the settings ask for it; rules have none, and who scores without folding loads none."""
    settings = load_settings(scorer={"reader": "distilled"})

    rules, shipped = contenders_of(settings, [], ["rules", "shipped"], EMBEDDER)

    assert shipped.policy.judging_model is not None
    assert shipped.scorer.reader is not None
    assert (rules.scorer.reader, shipped.scorer.reader.data) == (None, shipped_reader("distilled"))
    assert (shipped.policy.judging_model.name, READER in shipped.policy.judging_model.weights) == (
        shipped.scorer.name,
        True,
    )
    assert scorer_of(settings, EMBEDDER, alone=True).reader is None


def test_without_a_scorer_named_the_configured_one_judges(tmp_path: Path) -> None:
    """One policy serves two scorers, and two policies one scorer; with judging off scores are no probabilities."""
    files = [tmp_path / "1.toml", tmp_path / "2.toml"]
    for n, file in enumerate(files):
        file.write_text(f'version = "p-{n}"\n[escalation]\nenabled = {str(n > 0).lower()}\n')

    (alone,) = contenders_of(load_settings(scorer={"kind": "rules"}), [], [], EMBEDDER)
    two = contenders_of(load_settings(scorer={"kind": "rules"}), files, ["shipped"], EMBEDDER)
    (off,) = contenders_of(load_settings(), files[:1], [], EMBEDDER)

    assert (alone.scorer.name, off.base_rate) == ("rules", None)
    assert {(each.policy.version, each.scorer.name) for each in two} == {
        (version, JUDGING.name) for version in ("p-0", "p-1")
    }


def test_a_scorer_that_is_missing_or_one_too_many_is_refused(tmp_path: Path) -> None:
    """With what to do."""
    with pytest.raises(ConfigurationError, match="train scorer"):
        contenders_of(load_settings(), [], [str(tmp_path / "none.scorer")], EMBEDDER)
    with pytest.raises(ConfigurationError, match="or two"):
        contenders_of(load_settings(), [], ["rules", "shipped", "left-out"], EMBEDDER)
    assert "--data" in refused("backtest", "--scorer", "left-out")


def test_the_trained_scorer_finds_what_rules_miss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the project's own dialogues; columns bear the scorers' names, and the result says what is in-sample."""
    monkeypatch.setenv("TURNTIDE_DATA_DIR", str(tmp_path))
    sources = {"own_crowd": "own_crowd", "own_medicine": "surgery"}
    data = dialogues_file(tmp_path / "d.jsonl", own(27, *sources), sources)
    arguments = ["backtest", "--data", str(data), "--scorer", "rules", "--scorer", "shipped", "--no-sessions"]

    report = printed(*arguments)
    table = turntide(*arguments)

    rules, trained = report["outcomes"]
    assert (rules["policy"], trained["policy"]) == ("rules", JUDGING.name)
    assert trained["roc_auc"] > rules["roc_auc"]
    assert (rules["learnt_from"], trained["learnt_from"]) == ([], ["own_crowd"])
    assert sum(tenth["sessions"] for tenth in trained["reliability"]) == 54
    assert "was trained on own_crowd: in-sample" in table.stderr
    assert report["differing"] > 0
    assert report["differences"] == trained["first_alerts"] == []


def test_left_out_dialogues_are_judged_without_their_family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every session once; and no training saw the family that it judges."""
    sources = {"own_crescendo": "north_attack", "own_medicine": "north_benign", "own_crowd": "south_attack"}
    sources |= {"own_support": "south_benign"}
    dialogues = own(6, *sources)
    data = dialogues_file(tmp_path / "d.jsonl", dialogues, sources)
    asked: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(training, "own_pairs", lambda: own_pairs()[:100])
    monkeypatch.setattr(training, "own_dialogues", lambda: own(3, "own_fiction"))

    def noting(traffic: LabelledTraffic, contenders: Sequence[Contender], embedder: Embedder) -> list[JudgingReplay]:
        file = cast("TrainedScorer", contenders[0].scorer).model.file
        asked.append((file.version.removeprefix("without-"), [source.name for source in file.card.sources]))
        return judge(traffic, contenders, embedder)

    monkeypatch.setattr(judging, "judge", noting)

    found = judged_left_out(data, [], Policy(), EMBEDDER)

    assert {each.session_id for each in found} == {each.session_id for each in dialogues}
    assert len(found) == len(dialogues)
    assert asked == [
        ("north", ["own_fiction", "south_attack", "south_benign"]),
        ("south", ["north_attack", "north_benign", "own_fiction"]),
    ]
