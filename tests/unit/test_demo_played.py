"""The demo's conversations through the real embedder, scorer and fold: what alerts, and what is asked of it."""

import asyncio
import shlex
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby, islice

import duckdb
import pytest
from msgspec.structs import replace
from rich.console import Console

from jobs.demo.conversations import load_play
from jobs.demo.play import DemoState
from jobs.demo.questions import Figures, ask_archive, load_questions
from jobs.demo.run import ROLES
from jobs.demo.stage import Stage, event_line, further, progress_line, show_summary
from jobs.demo.watch import SOURCES
from jobs.shared.output import OutputFormat
from models.entities import REGISTRY
from models.events import AlertChanged, OutputEvent
from models.events.topics import TURNS, Topic
from streams.archive.catalog import open_reader
from streams.archive.writer import LakeWriter
from streams.roles.enrich import EnrichRole
from streams.roles.index import IndexRole
from streams.roles.memory import MemoryRole
from streams.roles.sessions import SessionsRole
from tests.support.data_files import data_file
from tests.support.demo_outputs import ANSWERS, ARCHIVE, outputs_of_the_play, summary_of, turns_of_the_play
from tests.support.golden_text import assert_text
from tests.support.lake_records import land_all, paths


@pytest.mark.parametrize(("turn", "problems"), [(33, []), (34, ["account alerted at turn 34 of 52 only"])])
def test_an_alert_in_the_last_third_is_a_problem(played: DemoState, turn: int, problems: list[str]) -> None:
    """Of 52 turns 34 have been said with turn 33; a later alert of the same session mends nothing."""
    (first,) = [changes for changes in played.alerts.values() if changes[0].session_id == "account"]
    first[0] = replace(first[0], turn=turn)
    played.alerts["again"] = [replace(first[0], turn=51, alert_id="again")]

    assert summary_of(played).problems == problems


def test_lines_are_printed_as_ever_and_quote_memories_alone(outputs: list[OutputEvent]) -> None:
    """Where there is no terminal each event is a line; only facts, memories and projects quote a conversation."""
    lines = [line for event in outputs if (line := event_line(event)) is not None]
    plain = [line for line in lines if not line.startswith(("memory    ", "project   "))]

    turns = [text for c in load_play() for turn in c.turns for text in turn.values()]
    assert [text for text in turns for line in plain if text in line] == []
    of_kind = groupby(sorted(lines, key=lambda line: line[:9]), key=lambda line: line[:9])
    assert_text("demo-lines", "\n".join(line for _, same in of_kind for line in islice(same, 4)))


def test_everything_that_is_wrong_is_a_problem(played: DemoState) -> None:
    """Missing and unexpected alerts, figures, answers and findings each fail the verdict, by name."""
    for session_id in ("account", "medicine"):
        of = played.conversations[session_id]
        played.conversations[session_id] = replace(of, expected_alert=not of.expected_alert)
    wrong = replace(
        ANSWERS,
        recalled=[replace(ANSWERS.recalled[0], problems=["identity/name should be Alexander"])],
        project=replace(ANSWERS.project, problems=["has an arc without key moments"]),
        purged=replace(ANSWERS.purged, problems=["a purged memory was read again"]),
        erased=replace(ANSWERS.erased, problems=["archive turns still holds what was erased"]),
    )
    counted = Figures({}, ["household: no topic was evicted"])
    summary = summary_of(
        played, counted=counted, answers=wrong, archive=replace(ARCHIVE, findings=["turns.v1-0: 1 missing"])
    )

    assert not summary.as_expected
    assert summary.problems == [
        "medicine was expected to alert and did not",
        "account alerted and was not expected to",
        "household: no topic was evicted",
        "What's my name? identity/name should be Alexander",
        "tool-library: has an arc without key moments",
        "isp-support a purged memory was read again",
        "user-edith: archive turns still holds what was erased",
        "archive: turns.v1-0: 1 missing",
    ]


def test_repeats_change_nothing_and_latency_is_from_sending_to_arrival(
    outputs: list[OutputEvent], played: DemoState
) -> None:
    """The log may hold an event twice with the same id; an alert's latency is that of the turn which raised it."""
    before, state = summary_of(played), DemoState.of(load_play())
    (raised, *_) = [e for e in outputs if isinstance(e, AlertChanged) and e.session_id == "account"]
    state.sent_at_s["account", raised.turn] = 10.0

    state.take(raised, at_s=10.25)

    assert [event for event in outputs if played.take(event, at_s=1.0)] == []
    assert summary_of(played) == before
    assert [alert.latency_ms for alert in summary_of(state).alerts] == [250.0]


def test_summary_is_printed_as_ever(played: DemoState) -> None:
    """Figures, the compressed clock, alerts, promises, and commands of which each SQL is one word of a shell."""
    summary, console = summary_of(played), Console(width=160)
    commands = further(summary)
    with console.capture() as captured:
        show_summary(summary, console, commands)

    assert_text("demo-summary", captured.get())
    assert sum(shlex.split(command)[-1].startswith("FROM ") for command in commands.values()) == 10


async def test_progress_stays_below_the_lines_on_a_terminal(
    outputs: list[OutputEvent], played: DemoState, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a terminal, bar and figures are drawn again and again, and what was emitted stands above them."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    stage, state = Stage(OutputFormat.TABLE, view=True), DemoState.of(load_play())
    drawing = asyncio.create_task(stage.draw(state))
    await asyncio.sleep(0)
    for event in outputs:
        stage.event(event)
    drawing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await drawing
    shown = capsys.readouterr().out

    played.elapsed_s = 3.0
    assert progress_line(played) == "progress  0:03 turns 732/732 · 244.0/s · lag ? · archived ? · alerts 2"
    assert "turns 0/732" in shown
    assert "alert     account: raised" in shown


def test_every_role_is_waited_for_on_what_it_reads() -> None:
    """A topic left out would let the demo end before it is read; the archive tells its offsets itself."""
    roles = (SessionsRole, MemoryRole, EnrichRole, IndexRole)

    assert {role.name: role.sources for role in roles} == SOURCES
    assert set(ROLES) == {*SOURCES, "archive"}


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """The archive at the end of the play."""
    place = paths(tmp_path_factory.mktemp("play"))
    by_topic: dict[Topic, list[object]] = {TURNS: [*turns_of_the_play()]}
    for event in outputs_of_the_play():
        if (topic := REGISTRY.topic_of[type(event)]) in REGISTRY.archived_topics:
            by_topic.setdefault(topic, []).append(event)
    with closing(LakeWriter(place)) as writer:
        land_all(writer, by_topic)
    with closing(open_reader(place)) as lake:
        yield lake


@pytest.fixture(scope="module")
def tables(landed: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """The same as tables; each test takes its change back."""
    with duckdb.connect() as con:
        views = "SELECT DISTINCT view_name FROM duckdb_views() WHERE NOT internal AND schema_name = 'main'"
        for (view,) in landed.execute(views).fetchall():
            rows = landed.execute(f"FROM {view}").to_arrow_table()
            con.register("rows", rows)
            con.execute(f"CREATE TABLE {view} AS FROM rows")
        yield con


def asked(lake: duckdb.DuckDBPyConnection) -> Figures:
    """What the demo makes of it."""
    return ask_archive(lake, load_play(), load_questions().users)


@pytest.mark.parametrize(("change", "problem"), data_file("demo_figures")["missing"])
def test_each_check_fails_by_name(tables: duckdb.DuckDBPyConnection, change: str, problem: str) -> None:
    """What is missing of the archive is a problem of the demo."""
    tables.execute("BEGIN")
    tables.execute(change)
    problems = asked(tables).problems
    tables.execute("ROLLBACK")

    assert any(each.startswith(problem) for each in problems)
    assert asked(tables).problems == []
