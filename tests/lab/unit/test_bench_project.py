"""`turntide lab bench project`: what is measured and which limits hold. Never how fast."""

import pytest

from jobs.lab.bench.project import FILLED, Log, consolidated, filled, measure, read, retrieved, spoken, talk_of
from jobs.lab.bench.result import publish
from jobs.shared.output import OutputFormat
from models.policy import Policy


def test_a_filled_project_holds_what_was_put_into_it() -> None:
    """None is another's repetition, and a reader has them all; questions to it find something."""
    log, view, _ = filled(Policy(), 300)
    changes = view.revision

    assert (len(view.memories), len({memory.content for memory in view.memories.values()})) == (300, 300)
    assert len(retrieved(view, 3, changed_by=log)) == 3
    assert view.revision >= changes + 3
    assert consolidated(log)["looked_at"] == 300


def test_a_conversation_goes_through_the_fold_turn_by_turn() -> None:
    """Each has its time, memories are made of it also when it comes round again, and a reader follows."""
    log, view, _ = filled(Policy(), 10)
    taken_ms, outputs = spoken(log, FILLED, 60, lot=7)
    read(view, outputs)

    assert len(taken_ms) == 60
    assert len(view.memories) > 10
    assert talk_of("x", [(taken_ms, outputs)])["chunks"] == len(view.chunks) == 4


def test_turns_are_compared_by_tenths() -> None:
    """The mean of the last ones to that of the first ones, over all conversations."""
    _, outputs = spoken(Log(Policy()), "one", 20)
    rising = [1.0] * 10 + [3.0] * 10

    assert talk_of("x", [(rising, outputs), (rising[::-1], outputs)])["ratio_last_tenth"] == 1.0
    assert talk_of("x", [(rising, outputs)])["ratio_last_tenth"] == 3.0


@pytest.mark.behaviour("project-25")
def test_everything_is_measured_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Held to the limits of project memory, in a table of its own."""
    report = measure(memories=80, asked=5, spoken_turns=((40, 1),))
    result = publish("project", OutputFormat.TABLE, lambda **_: report)

    assert [(figure.what, figure.bound) for figure in result.held_to] == [
        ("retrieval, p99", 5.0),
        ("retrieval after a change, p99", 5.0),
        ("retrieval by what was known at a time, p99", 20.0),
        ("consolidation of 100 memories", 100.0),
        ("40 turns, last tenth to first", 1.5),
        ("40 turns into 80 memories, last tenth to first", 1.5),
        ("a turn into a full project to one into an empty one", 1.5),
    ]
    assert [(each["what"], each["count"]) for each in report["reading"]] == [
        ("retrieval", 5),
        ("retrieval after a change", 5),
        ("retrieval by what was known at a time", 5),
    ]

    assert [len(table.rows) for table in result.rows] == [3, 2, 1, 1]
    assert "retrieval after a change" in capsys.readouterr().out
