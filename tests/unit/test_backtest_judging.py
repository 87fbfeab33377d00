"""A back-test sees the sessions, labels and alerts that the roles would have seen."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from msgspec import structs

from jobs.escalation.backtest.contenders import Contender
from jobs.escalation.backtest.judging import JudgedSession, judge, labelled_traffic
from jobs.shared.dialogues import read_dialogues
from models.events import AlertChanged, InputEvent, Role, SessionErased
from models.policy import ModePolicy, ModeThreshold, Policy
from models.risk.scorer import RuleScorer
from streams.oracle.replay import SessionReplay
from tests.support.backtest_sessions import CALM, LOUD, RISING, conversation, label, labelled_file, log_of, traffic_of
from tests.support.lake_records import NOW, turn
from tests.support.zero_embedder import ZeroEmbedder

POLICY = Policy()
LENIENT = structs.replace(
    POLICY,
    version="lenient-1",
    modes=ModePolicy(elevated=ModeThreshold(enter=0.98, leave=0.9), critical=ModeThreshold(enter=0.99, leave=0.95)),
)
BOTH = [Contender(POLICY), Contender(LENIENT)]
EVENTS: list[InputEvent] = [
    *conversation("calm", CALM),
    *conversation("rising", RISING, day=1),
    label("calm", escalating=True, day=1),
    label("calm", escalating=False, day=1),
    label("rising", escalating=True, day=1),
    *conversation("loud", LOUD, app_id="shop", day=2),
]


def sessions(policy: Policy = POLICY, events: Sequence[InputEvent] = EVENTS) -> dict[str, JudgedSession]:
    """Judged sessions by id."""
    records = log_of(events)
    (judging,) = judge(traffic_of(records), [Contender(policy)], ZeroEmbedder())
    return {each.session_id: each for each in judging.judged()}


def test_alerts_are_those_of_the_replay_with_every_memory_on() -> None:
    """Switching memories off for speed changes no alert: the same ids at the same turns, and the same scores."""
    replay = SessionReplay(POLICY, ZeroEmbedder(), RuleScorer())
    replay.fold(0, log_of(EVENTS))
    raised = [event for event in replay.result().outputs.values() if isinstance(event, AlertChanged)]
    expected = {
        (event.session_id, event.alert_id, event.turn, event.score) for event in raised if event.cause == "raised"
    }

    found = {(each.session_id, a.alert_id, a.turn, a.score) for each in sessions().values() for a in each.alerts}

    assert found == expected
    assert len(expected) == 2


def test_of_each_alert_the_latest_label_counts() -> None:
    """A session escalated where any of its alerts was right, whatever was said of another later; most have no label."""
    said = [("one", "a", True), ("one", "b", False), ("two", "a", True), ("two", "b", False), ("two", "a", False)]
    talks: list[InputEvent] = [*conversation("one", CALM), *conversation("two", CALM)]
    labels = [structs.replace(label(name, escalating=is_so), alert_id=alert) for name, alert, is_so in said]

    found = sessions() | sessions(events=[*talks, *labels])

    assert {name: each.escalating for name, each in found.items()} == {
        "calm": False, "rising": True, "loud": None, "one": True, "two": False,
    }  # fmt: skip


def test_detection_delay_counts_the_turns_that_were_there() -> None:
    """Turn numbers begin anywhere and have gaps: what counts is how many turns there were until the alert."""
    numbered = [structs.replace(said, turn=100 + 7 * said.turn) for said in conversation("rising", RISING)]
    helped = turn(102, session_id="rising", content="Of course.")
    with_answer = [numbered[0], structs.replace(helped, role=Role.ASSISTANT, timestamp=NOW), *numbered[1:]]
    found = sessions(events=with_answer)["rising"]

    assert found.first is not None
    assert (found.first.turn, found.first.turns_seen, found.turns) == (114, 4, 6)


def test_the_highest_score_includes_turns_after_the_last_profile() -> None:
    """A session that is still open where the log ends has scores that no profile told yet."""
    one_more = [*conversation("open", (0.0, 0.0, 0.0, 0.0, 0.0, 0.44))]
    before = sessions(events=one_more[:-1])["open"].highest

    after = sessions(events=one_more)["open"].highest

    assert before == 0.0
    assert after > 0.2


def test_two_policies_in_one_reading_judge_as_alone() -> None:
    """The traffic is read once: a generator is enough for both."""
    records = log_of(EVENTS)
    traffic = structs.replace(traffic_of(records), records=iter(records))

    both = [{each.session_id: each for each in one.judged()} for one in judge(traffic, BOTH, ZeroEmbedder())]

    assert both == [sessions(POLICY), sessions(LENIENT)]
    assert both[0]["rising"].alerts
    assert not both[1]["rising"].alerts


def test_an_erased_session_is_not_judged() -> None:
    """Nothing of it is known any longer, not even its label."""
    erased = SessionErased(session_id="rising", timestamp=NOW + timedelta(days=3), request_id="r-1")

    assert set(sessions(events=[*EVENTS, erased])) == {"calm", "loud"}


def test_dialogues_of_a_file_are_sessions_of_their_sources_and_none_is_cut_short(tmp_path: Path) -> None:
    """A partition that holds one open session evicts none of them: each ends before the next begins."""
    said = ["Good morning.", "Is the ferry late?", "Thanks."]
    file = labelled_file(tmp_path / "d.jsonl", [(f"s-{n}", "ferries", "benign", said) for n in range(5)])
    narrow = structs.replace(POLICY, partition=structs.replace(POLICY.partition, open_sessions=1))
    dialogues = read_dialogues(file)
    (judging,) = judge(labelled_traffic("d", dialogues), [Contender(narrow)], ZeroEmbedder())
    found = judging.judged()

    assert len(list(labelled_traffic("d", dialogues).records)) == labelled_traffic("d", dialogues).count
    assert judging.dead_letters == 0
    assert [(each.app_id, each.turns, each.escalating) for each in found] == [("ferries", 3, False)] * 5
    assert [each.started_at for each in found] == sorted({each.started_at for each in found})
