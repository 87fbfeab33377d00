"""The model card, and the file that is shipped."""

import re
from itertools import chain
from pathlib import Path

import msgspec
from msgspec import structs

from jobs.lab.eval.escalation import judge_dialogue, judging_by
from jobs.lab.eval.escalation_scoring import ScoredSession, summary
from jobs.lab.train.card import FAILURES, card_page, failures_of, measured_of
from jobs.lab.train.scorer import own_dialogues, own_pairs
from models.policy import Policy
from models.risk.turn_model import TurnModel, write_model
from streams.inference.trained_scorer import model_at
from streams.inference.wordllama import WordLlamaEmbedder
from tests.support.command_line import turntide

PAGE = Path(__file__).parents[3] / "deploy" / "models" / "escalation-1.md"


def judged(source: str, score: float, *, escalating: bool) -> ScoredSession:
    """A session of ten turns that alerts at its fifth if it scores 0.5."""
    return ScoredSession("s", source, escalating, score, score, 10, 1.0, 5 if score >= 0.5 else None)


RUN = summary(
    [judged("red_attack", score, escalating=True) for score in (0.9, 0.4)]
    + [judged("calm", score, escalating=False) for score in (0.1, 0.6, 0.2, 0.3)]
)


def carded(measured: dict[str, float]) -> TurnModel:
    """The shipped model with other figures on its card."""
    file = model_at(None).file
    changed = structs.replace(file, card=structs.replace(file.card, measured=measured))
    return TurnModel(changed, write_model(changed))


def test_figures_of_a_run_are_flat_and_lack_what_could_not_be_reckoned() -> None:
    """By hand: 7 of 8 pairs in order; one of two found, one of four a false alarm."""
    flat = measured_of(RUN, (0.25, 0.123456))

    assert (flat["roc_auc"], flat["recall"], flat["fpr"], flat["median_lead"]) == (0.875, 0.5, 0.25, 0.5)
    assert (flat["roc_auc_low"], flat["roc_auc_high"]) == (0.25, 0.1235)
    assert (flat["control.turns"], flat["calm.fpr"], flat["red_attack.dialogues"]) == (0.5, 0.25, 2)
    assert not {"calm.recall", "calm.label", "red_attack.fpr"} & set(flat)
    assert "roc_auc_low" not in measured_of(RUN, None)


def test_a_card_without_figures_says_so() -> None:
    """Not measured, or measured where one label is missing."""
    one_label = summary([judged("red_attack", 0.9, escalating=True)])

    assert "\n\nNot measured.\n\n" in card_page(carded({}))
    assert "\n| all | 1 |  |  |  |  |  |  |  | 1.000 |  | 0.500 |\n" in card_page(carded(measured_of(one_label, None)))


def test_a_card_says_how_its_figures_are_made_and_that_settings_were_chosen_on_them() -> None:
    """The command that gives them, and what they promise for other families; not of other data, nor without figures."""
    ours = carded(measured_of(RUN, None))
    mine = [structs.replace(source, name="mine") for source in ours.file.card.sources[:1]]
    changed = structs.replace(ours.file, card=structs.replace(ours.file.card, sources=mine))
    theirs = card_page(TurnModel(changed, write_model(changed)))

    assert "`TURNTIDE_SCORER__READER=off turntide lab eval escalation --leave-out family`" in card_page(ours)
    assert "chosen on the same families" in card_page(ours).partition("| red_attack |")[2]
    assert "chosen on the same families" not in theirs
    assert "chosen on the same families" not in card_page(carded({}))


def test_failures_found_on_shipped_data_are_not_said_of_other_data() -> None:
    """Figures and labels of sources that were not learnt from; what holds of any file stays."""
    mine = failures_of({"mine", "own_crowd"})

    assert failures_of({source.name for source in model_at(None).file.card.sources}) == [*FAILURES]
    assert not re.search(r"0\.\d\d|hh_|one in", " ".join(mine))
    assert any("English only" in failure for failure in mine)


def test_the_page_in_the_documents_is_the_card_of_the_shipped_file() -> None:
    """As the command prints it: `turntide lab train card > deploy/models/escalation-1.md`."""
    printed = turntide("train", "card")

    assert printed.exit_code == 0
    assert PAGE.read_text("utf-8") == printed.stdout


def test_the_shipped_file_was_learnt_from_what_may_be_handed_on() -> None:
    """Each source with a free licence, own texts among them; known failures are today's."""
    card = model_at(None).file.card
    closed = [
        source.name for source in card.sources if re.search(r"SA|NC|ND|GPL", source.licence) or not source.licence
    ]

    assert closed == []
    assert {dialogue.source for dialogue in own_dialogues()} <= {source.name for source in card.sources}
    assert card.failures == [*FAILURES]


def test_no_word_of_own_texts_is_in_the_shipped_file() -> None:
    """Words of seven letters and more, but for those that its card says anyway: all others are hashed."""
    model = model_at(None)
    plain = msgspec.json.encode(
        structs.replace(model.file, harms=None, turn=structs.replace(model.file.turn, dense=b"", words=b""))
    )

    def words(text: bytes) -> set[bytes]:
        return set(re.findall(rb"[a-z]{7,}", text.lower()))

    pairs = chain.from_iterable((pair.harmful, pair.benign) for pair in own_pairs())
    dialogues = chain.from_iterable(dialogue.said_by_user for dialogue in own_dialogues())
    said = words(" ".join([*pairs, *dialogues]).encode())

    assert len(said) > 1_000
    assert words(model.data) & said <= words(plain)
    assert len(words(plain)) < 200


def test_own_talk_that_escalates_is_told_from_what_does_not() -> None:
    """By the shipped model, which knows the project's own dialogues: nothing but a broken pipeline looks worse.

    When this was written: medicine and ordinary talk 0 %, support 2 %; the crowd 0.69 against hard negatives, and 0.07
    more than first turns tell. Of the crowd 12 % alert: rows of turns that look harmless alone do not.
    """
    embedder = WordLlamaEmbedder()
    judging = judging_by(model_at(None), Policy(), embedder)
    found = summary([judge_dialogue(each, judging, embedder) for each in own_dialogues()])

    for source in ("own_medicine", "own_support", "own_ordinary"):
        assert float(str(found["by_source"][source]["fpr"])) <= 0.15
    assert float(str(found["by_source"]["own_crowd"]["roc_auc"])) >= 0.6
    assert float(str(found["by_source"]["own_crowd"]["recall"])) >= 0.05
    assert float(str(found["gain_over_first_turn"])) > 0.0
