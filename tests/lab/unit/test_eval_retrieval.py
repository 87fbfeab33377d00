"""`turntide lab eval retrieval`: questions read and cleaned, recall counted by hand, rankings left out."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.lab.eval.dialogues import LabelledQuestion, Place, in_bursts, own_questions, read_questions
from jobs.lab.eval.retrieval import AskedQuestion, measure, recalls
from jobs.lab.train import ranker as training
from models.errors import ConfigurationError
from models.policy import Policy
from models.retrieval.ranker import SIGNALS, ranker_of
from models.text.language import UNDECIDED, language_of
from streams.index.hybrid_search import TurnCandidates
from streams.inference.wordllama import WordLlamaEmbedder


def sample(name: str, *qa: dict[str, Any]) -> dict[str, Any]:
    """A conversation of two sessions with two turns each."""
    lines = {
        f"session_{n}": [{"speaker": "Ada", "dia_id": f"D{n}:{k}", "text": f"said {n} {k}"} for k in (1, 2)]
        for n in (1, 2)
    }
    dates = {f"session_{n}_date_time": f"1:56 pm on {n} May, 2023" for n in (1, 2)}
    return {
        "sample_id": name,
        "qa": list(qa),
        "conversation": {"speaker_a": "Ada", "speaker_b": "Bo", **lines, **dates},
    }


def asked(evidence: list[str], category: int = 4) -> dict[str, Any]:
    """A question as the file has it; answers are of different types there."""
    return {"question": "Why?", "answer": 2022, "evidence": evidence, "category": category}


def written(tmp_path: Path, *samples: dict[str, Any]) -> Path:
    """The samples as a file."""
    file = tmp_path / "talk.json"
    file.write_text(json.dumps(samples))
    return file


def answer(category: str, turns: list[int], wanted: set[int]) -> AskedQuestion:
    """Turns found and wanted, all of sessions of ten turns."""
    places = [(f"s{n // 10}", n) for n in turns]
    groups = ("1-4", category) if category != "5" else ("1-5", category)
    question = LabelledQuestion("u", "?", groups, frozenset((f"s{n // 10}", n) for n in wanted))
    nothing = TurnCandidates([], [])
    return AskedQuestion(question, nothing, np.zeros((0, 0)), np.zeros(0, np.bool_), places, [])


def by_words(asked: AskedQuestion) -> list[Place]:
    """What was found, as it is given."""
    return asked.words


def test_evidence_is_read_as_the_turns_are_produced(tmp_path: Path) -> None:
    """Numbers of the file begin at 1, turns at 0; each sample is its own user's; a limit leaves samples out."""
    file = written(tmp_path, sample("a", asked(["D2:1; D1:2"])), sample("b", asked(["D:1:01"], category=5)))
    dialogues = read_questions(file)

    assert dialogues.questions == [
        LabelledQuestion(
            "user-a", "Why?", ("1-4", "1-5", "4"), frozenset({("a/session_2", 0), ("a/session_1", 1)}), "2022"
        ),
        LabelledQuestion("user-b", "Why?", ("1-5", "5"), frozenset({("b/session_1", 0)}), "2022"),
    ]
    assert {"user-a", "user-b"} == {turn.user_id for turn in dialogues.turns}
    assert (len(dialogues.turns), dialogues.conversations) == (8, 2)

    file = written(tmp_path, sample("a", asked(["D1:1"])), sample("b", asked(["D1:1"])))
    dialogues = read_questions(file, limit=1)

    assert {"user-a"} == {turn.user_id for turn in dialogues.turns}
    assert [question.user_id for question in dialogues.questions] == ["user-a"]


def test_evidence_that_is_not_there_is_counted_and_left_out(tmp_path: Path) -> None:
    """A question keeps what the file has; without any it is skipped."""
    file = written(tmp_path, sample("a", asked(["D1:1", "D1:9"]), asked([]), asked(["D"]), asked(["D7:7"])))
    dialogues = read_questions(file)

    assert [question.evidence for question in dialogues.questions] == [{("a/session_1", 0)}]
    assert (dialogues.without_evidence, dialogues.unknown_evidence) == (3, 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [("[1]", "conversation 1"), ('[{"sample_id": "x", "conversation": {}}]', "no questions"), ("[", "array")],
)
def test_another_file_is_refused(tmp_path: Path, content: str, message: str) -> None:
    """The error says which conversation, and quotes nothing of it."""
    file = tmp_path / "other.json"
    file.write_text(content)

    with pytest.raises(ConfigurationError, match=message):
        read_questions(file)
    with pytest.raises(ConfigurationError, match=r"nowhere\.json"):
        read_questions(tmp_path / "nowhere.json")


LONG = {
    "question_type": "single-session-user",
    "question": "Which bike did I buy?",
    "answer": "A red one",
    "question_date": "2023/05/30 (Tue) 23:40",
    "haystack_session_ids": ["s_2", "s_1"],
    "haystack_dates": ["2023/05/21 (Sun) 10:00", "2023/05/20 (Sat) 02:21"],
    "haystack_sessions": [
        [{"role": "user", "content": "Hello."}],
        [
            {"role": "user", "content": "I bought a red bike.", "has_answer": True},
            {"role": "assistant", "content": "Nice!", "has_answer": False},
        ],
    ],
    "answer_session_ids": ["s_1"],
}


def test_longmemeval_is_read(tmp_path: Path) -> None:
    """A user for each question; turns that hold the answer are evidence; questions without one are counted."""
    file = written(tmp_path, {"question_id": "q1", **LONG}, {"question_id": "q2_abs", **LONG})
    dialogues = read_questions(file, "longmemeval")

    assert dialogues.questions == [
        LabelledQuestion(
            "user-q1", "Which bike did I buy?", ("all", "single-session-user"), frozenset({("q1/1", 0)}), "A red one"
        ),
    ]
    assert [(turn.session_id, turn.turn, turn.role) for turn in dialogues.turns if turn.user_id == "user-q1"] == [
        ("q1/1", 0, "user"), ("q1/1", 1, "assistant"), ("q1/0", 0, "user"),
    ]  # fmt: skip
    assert dialogues.turns[0].timestamp.isoformat() == "2023-05-20T02:21:00+00:00"
    assert (dialogues.conversations, dialogues.without_evidence, dialogues.learnt) == (2, 1, False)
    with pytest.raises(ConfigurationError, match="question 1"):
        read_questions(written(tmp_path, sample("a")), "longmemeval")


def test_what_turntide_brings_has_questions_in_three_styles_and_four_languages() -> None:
    """Each piece of evidence stands in exactly one turn; what is asked and said is in the language."""
    own = {each.name: each for each in own_questions()}
    languages = {
        f"{name}{wording}": code
        for name, code in {"german": "de", "spanish": "es", "french": "fr", "japanese": "ja"}.items()
        for wording in ("", "-inflected")
    }

    assert {name: len(each.questions) for name, each in own.items()} == dict.fromkeys(
        ("assistant", "team", "friends"), 20
    ) | dict.fromkeys(languages, 15)
    for name, language in languages.items():
        told = Counter(language_of(turn.content) for turn in own[name].turns)
        assert told[language] > 0.7 * told.total()
        assert {turn.role for turn in own[name].turns} == {"user", "assistant"}
        assert {language_of(each.text) for each in own[name].questions} <= {language, UNDECIDED}


async def test_stems_of_the_language_find_other_forms_of_its_words() -> None:
    """Of the four languages; English stems found 0.93 of German ones and 0.91 of French ones."""
    sets = [each for each in own_questions() if each.name.endswith("-inflected")]
    report = await measure(sets, WordLlamaEmbedder(), Policy(), lambda _done, _of: None)

    assert report["sets"]["macro"]["bm25"] == 1.0


def test_a_turn_becomes_a_burst_and_its_evidence_the_message_that_answers(tmp_path: Path) -> None:
    """Of one voice, numbered anew; nothing of what was said is lost."""
    talk = sample("a", asked(["D1:1"]) | {"answer": "a red bike"})
    talk["conversation"]["session_1"][0]["text"] = "Hi there, everybody! Bought the red bike. Bye!"
    bursts = in_bursts(read_questions(written(tmp_path, talk)))

    assert [(turn.turn, turn.content) for turn in bursts.turns[:4]] == [
        (0, "Ada: Hi there, everybody!"), (1, "Ada: Bought the red bike."), (2, "Ada: Bye!"), (3, "Ada: said 1 2"),
    ]  # fmt: skip
    assert [question.evidence for question in bursts.questions] == [{("a/session_1", 1)}]


ANSWERS = [answer("4", [1, 2, 3], {2}), answer("1", [9, 8, 7, 6, 5, 44, 4], {4, 9}), answer("5", [1], {50})]


def test_recall_is_the_mean_over_questions() -> None:
    """By depth and group."""
    found = recalls(ANSWERS, by_words)

    assert found["1-4"] == {"formula": 0.0, "recall@5": 0.75, "recall@10": 1.0, "recall@20": 1.0}
    assert found["1"]["recall@5"] == 0.5
    assert found["5"]["recall@20"] == 0.0
    assert list(found) == ["1-4", "1-5", "1", "4", "5"]


async def test_what_was_said_is_found_by_its_words(tmp_path: Path) -> None:
    """Each question within its own user's conversations, whatever others said; beside it the other rankings."""
    talk = sample("a") | {"qa": [asked(["D2:1"]) | {"question": "Who said 2 1?"}]}
    other = sample("b") | {"qa": [asked(["D1:1"]) | {"question": "Who said 1 1?"}]}
    first = read_questions(written(tmp_path, talk, other))
    report = await measure([first, in_bursts(first)], WordLlamaEmbedder(), Policy(), lambda _done, _of: None)

    assert (report["indexed_turns"], report["questions"], report["conversations"]) == (8, 2, 2)
    whole = {"recall@5": 1.0, "recall@10": 1.0, "recall@20": 1.0}
    assert report["turns"]["4"] == {"formula": 1.0, **whole}
    assert report["weights"] == "learned from the other conversations"
    assert report["sets"]["macro"] == {
        "questions": 4, "bm25": 1.0, "formula": 1.0, "ranker": 1.0, "low": 1.0, "high": 1.0
    }  # fmt: skip
    assert report["ablation"]["speaker"] == {"locomo": 0.0, "bursts": 0.0}


async def test_no_conversation_is_ranked_by_what_was_learned_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own questions are never among those that weights are learned from."""
    learned = list[int]()

    def fit(of: Iterable[Any], without: frozenset[str]) -> dict[str, float]:
        given = list(of)
        learned.append(len(given))
        return training.fit(given, without)

    monkeypatch.setattr("jobs.lab.eval.retrieval.fit", fit)
    one = asked(["D1:1"]) | {"question": "Who said 1 1?"}
    three = [sample(name, *[one] * count) for name, count in (("a", 1), ("b", 2), ("c", 4))]
    dialogues = read_questions(written(tmp_path, *three))
    await measure([dialogues], WordLlamaEmbedder(), Policy(), lambda _done, _of: None)

    assert sorted(learned[:3]) == [3, 5, 6]


def test_weights_are_learned_of_what_answers() -> None:
    """A signal that marks answers gets weight, one that is noise hardly any, one that is left out none."""
    drawn = np.random.default_rng(1)
    asked_of = []
    for _ in range(50):
        values, answers = drawn.normal(size=(20, len(SIGNALS))), np.arange(20) == 7
        values[7, SIGNALS.index("speaker")] += 3
        asked_of.append((values, answers))
    weights = training.fit(asked_of, without=frozenset({"asks"}))

    assert max(weights, key=lambda name: abs(weights[name])) == "speaker"
    assert "asks" not in weights
    assert ranker_of("e5") is not None
