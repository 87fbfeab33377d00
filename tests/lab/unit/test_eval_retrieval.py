"""`turntide lab eval retrieval`: questions read and cleaned, recall counted by hand, its command."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.lab.eval.dialogues import LabelledQuestion, read_questions
from jobs.lab.eval.retrieval import QuestionResult, measure, query_times, recalls
from models.errors import ConfigurationError
from models.policy import Policy
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


def answer(category: int, turns: list[int], wanted: set[int]) -> QuestionResult:
    """Turns found and wanted, all of sessions of ten turns."""
    places = [(f"s{n // 10}", n) for n in turns]
    question = LabelledQuestion("u", "?", category, frozenset((f"s{n // 10}", n) for n in wanted))
    return QuestionResult(question, places, list(dict.fromkeys(session for session, _ in places)), float(len(turns)))


def test_evidence_is_read_as_the_turns_are_produced(tmp_path: Path) -> None:
    """Numbers of the file begin at 1, turns at 0; each sample is its own user's; a limit leaves samples out."""
    file = written(tmp_path, sample("a", asked(["D2:1; D1:2"])), sample("b", asked(["D:1:01"], category=2)))
    dialogues = read_questions(file)

    assert dialogues.questions == [
        LabelledQuestion("user-a", "Why?", 4, frozenset({("a/session_2", 0), ("a/session_1", 1)})),
        LabelledQuestion("user-b", "Why?", 2, frozenset({("b/session_1", 0)})),
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


ANSWERS = [answer(4, [1, 2, 3], {2}), answer(1, [9, 8, 7, 6, 5, 44, 4], {4, 9}), answer(5, [1], {50})]


def test_recall_is_the_mean_over_questions() -> None:
    """By depth and group; a session is wanted once however much evidence it has; times are percentiles."""
    found, _ = recalls(ANSWERS)

    assert found["1-4"] == {"recall@5": 0.75, "recall@10": 1.0, "recall@20": 1.0}
    assert found["1-5"] == {"recall@5": 0.5, "recall@10": 0.6667, "recall@20": 0.6667}
    assert found["1"]["recall@5"] == 0.5
    assert found["5"]["recall@20"] == 0.0
    assert {"1-4", "1-5", "1", "4", "5"} == found.keys()

    _, found = recalls([answer(4, [44, 1], {4, 9}), answer(4, [44], {4, 40})])

    assert found["4"]["recall@5"] == 0.75

    assert query_times(ANSWERS) == {"p50": 3.0, "p95": 6.6, "p99": 6.92}


async def test_what_was_said_is_found_by_its_words(tmp_path: Path) -> None:
    """Each question within its own user's conversations, whatever others said."""
    talk = sample("a", asked(["D1:2"], category=1)) | {"qa": [asked(["D2:1"]) | {"question": "Who said 2 1?"}]}
    dialogues = read_questions(written(tmp_path, talk, sample("b")))
    report = await measure(dialogues, WordLlamaEmbedder(), Policy(), lambda _done, _of: None)

    assert (report["indexed_turns"], report["questions"], report["conversations"]) == (8, 1, 2)
    assert {"recall@5": 1.0, "recall@10": 1.0, "recall@20": 1.0} == report["turns"]["4"] == report["sessions"]["4"]
