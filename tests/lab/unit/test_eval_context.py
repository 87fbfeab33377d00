"""The talks that Turntide brings, and that the prompt made for a question holds its answer."""

from collections import Counter

import pytest

from jobs.lab.eval.context_answers import BUDGETS, measure, read_talks
from models.policy import Policy
from streams.inference.wordllama import WordLlamaEmbedder

LEAST = 0.85


def test_the_set_is_what_it_says() -> None:
    """8 talks of 40 turns, 64 questions, each answered by the turn that it names."""
    talks = read_talks()

    said = {(turn.session_id, turn.turn): turn.content.casefold() for turn in talks.turns}
    assert [len(turns) for turns in talks.of_users.values()] == [40] * 8
    assert Counter(each.user_id for each in talks.questions) == dict.fromkeys(talks.of_users, 8)
    assert all(each.answer.casefold() in said[place] for each in talks.questions for place in each.evidence)


@pytest.mark.parametrize("one_user", [False, True])
async def test_the_prompt_holds_the_answer(*, one_user: bool) -> None:
    """At least for the stated share of the questions, with the default budget, and more than search's first ten."""
    counted: list[int] = []
    report = await measure(
        read_talks(one_user=one_user), WordLlamaEmbedder(), Policy(), lambda done, _: counted.append(done)
    )
    of_all = report["all"][str(BUDGETS[0])]

    assert of_all["context"] >= max(LEAST, of_all["search"])
    assert of_all["retrieve"] < of_all["bm25"] < of_all["search"]
    assert all(row["tokens_median"] <= row["budget"] for row in report["rows"])
    assert (len(counted), len(report["rows"])) == (64 * len(BUDGETS), 8 * len(BUDGETS))
