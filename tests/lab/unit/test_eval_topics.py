"""`turntide lab eval topics`: a separable embedder, determinism, its command."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from jobs.lab.bench.measuring import Figures
from jobs.lab.eval.dialogues import BEGINS, TopicDialogue, read_dialogues
from jobs.lab.eval.topics import DIALOGUES_PER_SESSION, measure, mix
from models.errors import ConfigurationError
from models.events import Role
from models.policy import Policy
from streams.ports import Embedder
from tests.support.command_line import turntide
from tests.support.session_driver import said
from tests.support.users_indexed import MATTERS, MatterEmbedder


def dialogue(matter: str, turns: int = 16) -> TopicDialogue:
    """A user and an assistant on one matter, turn about."""
    spoken = [
        said(
            number,
            f"{matter} number {number}",
            session_id=matter,
            role=Role.ASSISTANT if number % 2 else Role.USER,
            timestamp=BEGINS,
        )
        for number in range(turns)
    ]
    return TopicDialogue("made up", f"user-{matter}", spoken)


def toy_report(embedder: Embedder, *, seed: int = 1) -> Figures:
    """A small measurement."""
    return measure(
        [dialogue(matter) for matter in MATTERS],
        embedder,
        Policy(),
        lambda _done, _runs: None,
        sessions=3,
        seed=seed,
        thresholds=(0.2, 0.5),
    )


@pytest.mark.behaviour("topic-01")
def test_a_separable_embedder_is_sorted_without_a_mistake() -> None:
    """Every threshold between 0 and 1 gives five topics for five dialogues."""
    report = toy_report(MatterEmbedder())

    assert {(point["f1"], point["topics_per_session"]) for point in report["curve"]} == {(1.0, 5.0)}
    # Policy's and source's thresholds are looked at though neither was asked for, with each bonus.
    assert [(point["threshold"], point["active_bonus"]) for point in report["at_seed"]] == [(0.7, 0.0), (0.7, 0.1)]
    assert sorted({point["threshold"] for point in report["curve"]}) == [0.2, 0.5, 0.7]


def test_the_same_seed_gives_the_same_report() -> None:
    """And another one other sessions."""
    dialogues = [dialogue(matter) for matter in MATTERS]

    assert toy_report(MatterEmbedder()) == toy_report(MatterEmbedder())
    assert mix(dialogues, sessions=3, seed=1) != mix(dialogues, sessions=3, seed=2)


def test_sessions_come_back_to_each_dialogue_by_a_user_turn() -> None:
    """Five dialogues, each in two parts in its own order; every part begins with the user."""
    for session in mix([dialogue(matter) for matter in MATTERS], sessions=4, seed=3):
        began = {now.turn.role for before, now in pairwise(session) if before.dialogue != now.dialogue}
        assert began == {session[0].turn.role} == {Role.USER}
        for number in range(DIALOGUES_PER_SESSION):
            numbers = [each.turn.turn for each in session if each.dialogue == number]
            assert numbers == sorted(numbers) != []


def test_too_few_dialogues_are_refused() -> None:
    """Four are no session of five; the message says what is needed."""
    with pytest.raises(ConfigurationError, match="4 dialogues have 4 user turns or more, 5 are needed"):
        mix([dialogue(matter) for matter in MATTERS[:4]], sessions=1, seed=1)


def test_dialogues_are_read_and_chosen_by_what_stands_beside_them(tmp_path: Path) -> None:
    """Fields beside a dialogue select it; a file without them is taken whole; broken lines are left out."""
    turns = [{"role": "user", "content": "boat"}]
    labelled = tmp_path / "labelled.jsonl"
    lines = [{"turns": turns, "label": "good"}, {"turns": turns, "label": "bad"}, {"turns": 5}]
    labelled.write_text("\n".join(json.dumps(line) for line in lines))
    plain = tmp_path / "plain.jsonl"
    plain.write_text(json.dumps({"messages": turns}))

    found = read_dialogues([labelled, plain], ["label=good"])

    assert [(each.source, each.user_turns) for each in found] == [("labelled.jsonl", 1), ("plain.jsonl", 1)]
    with pytest.raises(ConfigurationError, match="no dialogue is left"):
        read_dialogues([labelled], ["label=none"])
    with pytest.raises(ConfigurationError, match="cannot read"):
        read_dialogues([tmp_path / "missing"])
    with pytest.raises(ConfigurationError, match="name=value"):
        read_dialogues([], ["label"])


def test_command_prints_every_key_and_no_message() -> None:
    """JSON has the report and its envelope, and nothing that was said."""
    result = turntide("eval", "topics", "--sessions", "1", "--output", "json")

    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert {"best", "curve", "command", "measured_at", "machine"} <= printed.keys()
    assert printed["embedder"] == "wordllama"
    assert [point["threshold"] for point in printed["at_shipped"]] == [printed["shipped_threshold"]] * 2
    said = {turn.content for each in read_dialogues() for turn in each.turns}
    assert not any(content in result.stdout for content in said)
