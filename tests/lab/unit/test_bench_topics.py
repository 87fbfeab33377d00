"""`turntide lab bench topics`: its arithmetic, its walk over the demo's conversations, its command. Never how fast."""

import pytest
from msgspec.structs import replace

from jobs.lab.bench.measuring import BenchFailed
from jobs.lab.bench.topics import (
    SESSION_TURNS,
    LongSession,
    long_sessions,
    match_ms,
    packing_rows,
    strings_of,
    unpack_ms,
    walk,
)
from jobs.lab.eval.dialogues import BEGINS, TopicDialogue, read_dialogues
from models.events import Role, Turn
from models.policy import Policy
from streams.settings import load_settings
from streams.wiring import policy_of
from tests.support.command_line import printed
from tests.support.loaded import loaded_embedder


@pytest.fixture(scope="module")
def sessions() -> list[LongSession]:
    """The demo's conversations, strung together."""
    return long_sessions(read_dialogues(), loaded_embedder(), most=4)


def test_dialogues_are_strung_together_in_order(sessions: list[LongSession]) -> None:
    """All turns of the demo are there, numbered through, and their times rise."""
    wanted = [turn.content for dialogue in read_dialogues() for turn in dialogue.turns]

    assert [turn.content for session in sessions for turn in session.turns] == wanted
    for session in sessions:
        assert [turn.turn for turn in session.turns] == list(range(len(session.turns)))
        times = [turn.timestamp for turn in session.turns]
        assert times == sorted(set(times))


def test_users_who_say_much_have_sessions_of_their_own() -> None:
    """What does not fit begins a new session; the most are chosen from all over the file."""
    turn = Turn(session_id="s", user_id="u", app_id="a", turn=0, role=Role.USER, content="boat", timestamp=BEGINS)
    much = [TopicDialogue("file", f"user-{n}", [turn] * (SESSION_TURNS - 1)) for n in range(4)]

    assert [len(session.turns) for session in long_sessions(much, loaded_embedder(), most=9)] == [SESSION_TURNS - 1] * 4
    assert len(long_sessions(much, loaded_embedder(), most=2)) == 2


def test_every_message_is_walked_and_packed_ones_are_named(sessions: list[LongSession]) -> None:
    """Each addition is timed once, as what it was; lineages name turns of their session."""
    walked = walk(sessions, policy_of(load_settings()))

    assert sum(map(len, walked.taken_ms.values())) == sum(len(session.turns) for session in sessions)
    assert 0 < len(walked.taken_ms["compacted"]) <= len(walked.compactions)
    assert {turn for lineage in walked.compactions for turn in lineage.turns} < set(range(SESSION_TURNS))
    assert 0 < walked.most_topics <= Policy().topics.most_topics


@pytest.mark.behaviour("topic-09")
def test_packing_is_measured_for_each_count(sessions: list[LongSession]) -> None:
    """A trained dictionary saves more than gzip and base64, 70 % of 20 messages."""
    rows = packing_rows(sessions)

    assert [row["messages"] for row in rows] == [10, 20, 50]
    for row in rows:
        assert row["gzip_base64_saves_percent"] < row["zstd_saves_percent"]
        assert row["messages"] < 20 or row["zstd_saves_percent"] >= 70
    strings = strings_of(sessions, 50)
    assert {len(string) for string in strings} == {50}
    assert len(strings) == sum(len(session.turns) // 50 for session in sessions)
    assert len(unpack_ms(sessions, "gzip")) == rows[-1]["strings"] == len(strings)


def test_counts_without_a_string_have_no_row(sessions: list[LongSession]) -> None:
    """Fifteen turns give one string of ten."""
    short = [replace(sessions[0], turns=sessions[0].turns[:15])]

    assert [(row["messages"], row["strings"]) for row in packing_rows(short)] == [(10, 1)]
    assert len(unpack_ms(short, "zstd")) == 1


def test_matching_needs_twenty_topics(sessions: list[LongSession]) -> None:
    """Every user message beyond the first twenty is matched once; with fewer nothing is measured."""
    users = sum(turn.role is Role.USER for session in sessions for turn in session.turns)
    few = [replace(sessions[0], turns=sessions[0].turns[:20], vectors=sessions[0].vectors[:20])]

    assert len(match_ms(sessions, Policy())) == users - 20
    with pytest.raises(BenchFailed, match="too few to match against 20 topics"):
        match_ms(few, Policy())


@pytest.mark.behaviour("topic-22", "topic-23")
def test_command_prints_every_key_and_holds_every_limit() -> None:
    """JSON has the report, its rows and its envelope, and no message; without a broker all figures but the role's."""
    fields = printed("bench", "topics", "--quick", "--no-role")

    envelope = {"held", "load_average_at_start", "cpus", "command", "measured_at", "code", "machine"}
    assert {"add_ms", "packing", "ratio_throughput", "probes", "notes", *envelope} < fields.keys()
    assert {"messages", "gzip_base64_saves_percent", "zstd_saves_percent"} < fields["packing"][0].keys()
    said = {turn.content for each in read_dialogues() for turn in each.turns}
    assert not any(content in str(fields) for content in said)

    figures = {each["figure"].removeprefix("topics: "): each for each in fields["held"]}
    assert {"add_ms, median", "add_ms, p99", "match_ms at 20 topics, p99", "kb_per_topic, largest"} < figures.keys()
    assert "saved at 50 messages, gzip and base64" in figures
    assert "ratio_throughput" not in figures
    for each in figures.values():
        measured, limit = each["measured"], each["limit"]
        assert each["reached"] is (measured >= limit if each["at_least"] else measured <= limit)
    assert (len(fields["ratio_fold"]["rounds"]), fields["ratio_throughput"]) == (3, None)
    assert 0.0 <= fields["probes"]["loss"] <= 1.0
