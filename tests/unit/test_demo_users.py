"""Users in the demo: how their facts and episodes are told, counted and judged; and what its end waits for."""

from __future__ import annotations

import shlex
from collections import Counter

import msgspec

from jobs.demo.run import ROLES
from jobs.demo.stage import Stage
from jobs.demo.state import DemoState
from jobs.demo.watch import SOURCES
from jobs.shared.output import OutputFormat
from models.events import EpisodeCompressed, FactChanged, OutputEvent, UserTurnAdded
from streams.roles.enrich import EnrichRole
from streams.roles.index import IndexRole
from streams.roles.memory import MemoryRole
from streams.roles.sessions import SessionsRole
from tests.demo_outputs import (
    RECALLED,
    summary_of,
)


def test_summary_counts_facts_and_episodes(outputs: list[OutputEvent], played: DemoState) -> None:
    """By category and cause, of all users; of the one that is asked for also turn ranges and past values."""
    users = summary_of(played).users
    turns = [event for event in outputs if isinstance(event, UserTurnAdded)]
    episodes = [event for event in outputs if isinstance(event, EpisodeCompressed)]
    changes = [event for event in outputs if isinstance(event, FactChanged)]

    assert users.users == len({(event.app_id, event.user_id) for event in turns})
    assert users.fact_changes == dict(Counter(change.cause for change in changes))
    assert sum(users.facts.values()) == users.fact_changes["stored"] - users.fact_changes["retracted"]
    assert (users.episodes, users.episode_turns) == (len(episodes), 20 * len(episodes))
    assert users.turns_to_summaries_ratio
    assert users.turns_to_summaries_ratio > 3
    (alex,) = users.shown
    assert (alex.turns, alex.turns_at_hand) == (62, 10)
    assert alex.episodes == ["turns 1-20", "turns 21-40", "turns 41-60"]
    assert alex.past_values == 4  # a name, a town, a timezone, a diet


def test_wrong_answers_and_facts_that_never_changed_are_problems(played: DemoState) -> None:
    """The verdict names the question and what is wrong about its answer, and what no fact of the user went through."""
    alex = played.users.by_name["assistant", "alex"]
    del alex.causes["retracted"]
    wrong = [msgspec.structs.replace(RECALLED[0], problems=["identity/name should be Alexander"]), RECALLED[1]]
    summary = summary_of(played, recalled=wrong)

    assert not summary.as_expected
    assert summary.problems == [
        "alex: no fact was retracted",
        "What's my name? identity/name should be Alexander",
    ]


def test_further_commands_ask_for_facts_and_episodes(played: DemoState) -> None:
    """Each command can be pasted into a shell: its SQL is one word."""
    commands = [
        shlex.split(command) for _, command in Stage(OutputFormat.TABLE, view=False).further(summary_of(played))
    ]
    queries = [words[-1] for words in commands if "query" in words]

    assert [sql.split()[1] for sql in queries if "key, value" in sql] == ["facts", "fact_changes"]
    assert any(sql.startswith("FROM user_episodes ") for sql in queries)
    assert any("user_id = 'alex'" in sql for sql in queries)


def test_every_role_is_waited_for_on_what_it_reads() -> None:
    """A topic left out would let the demo end before it is read; the archive tells its offsets itself."""
    roles = (SessionsRole, MemoryRole, EnrichRole, IndexRole)

    assert {role.name: role.sources for role in roles} == SOURCES
    assert set(ROLES) == {*SOURCES, "archive"}
