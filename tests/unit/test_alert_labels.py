"""Labels of alerts: written for known ones only, read back from log and archive, the latest of each."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiokafka.structs import ConsumerRecord
from msgspec.structs import replace
from typer.testing import CliRunner

from jobs.alerts.command import say
from jobs.alerts.labels import erased_by, labels_in
from jobs.cli import app
from jobs.escalation.backtest.contenders import Contender
from jobs.escalation.backtest.judging import judge
from models import events
from models.errors import ConfigurationError
from models.events.topics import ALERTS, TURNS
from models.policy import IntakePolicy, Policy
from models.wire.codec import decode_input, encode
from streams.archive.inputs import archived_changes, archived_inputs
from streams.archive.writer import LakeWriter
from streams.kafka.producer import Record
from streams.settings import load_settings
from tests.support.alert_log import consumed
from tests.support.backtest_sessions import log_of, traffic_of
from tests.support.lake_records import NOW, PREFIX, alert, buffer_of, example, paths, turn
from tests.support.zero_embedder import ZeroEmbedder

ALERT = alert("e-1", events.AlertStatus.FIRING)
JUDGED = events.Escalation(
    probability=0.62,
    log_odds=0.4895,
    base_log_odds=-2.0,
    threshold=0.45,
    model="m-1",
    contributions=[events.Contribution("cusum", 0.83, 2.4895, 0.12, alert_without=False, why="rising since turn 2")],
    turns=[events.TurnShare(3, 2.4895)],
    earlier_log_odds=0.0,
)


def label(alert_id: str = "a-1", *, escalating: bool = True, **fields: Any) -> events.AlertLabelled:
    """A label of an alert."""
    return events.AlertLabelled(session_id="s-1", timestamp=NOW, alert_id=alert_id, escalating=escalating, **fields)


def ask(writer: LakeWriter, sql: str) -> list[Any]:
    """Rows of a query."""
    return writer.con.execute(sql).fetchall()


@pytest.mark.parametrize(("named", "found"), [(ALERT.app_id, {"before"}), ("", {"before"}), ("other", set())])
def test_an_alert_whose_session_was_erased_after_it_is_known(named: str, found: set[str]) -> None:
    """Not one of another session, of another app's of the same id, or that it had after it had begun anew."""
    erased = events.SessionErased(session_id="s-1", app_id=named, timestamp=NOW, request_id="r")
    log = consumed([turn(0, session_id="s-1"), turn(0, session_id="s-2", content="session_erased"), erased, turn(1)])
    topic = TURNS.full_name(PREFIX)
    alerts = [
        replace(ALERT, alert_id=name, session_id=session, source=events.Position(topic, 0, offset))
        for name, session, offset in (("before", "s-1", 0), ("other", "s-2", 1), ("after", "s-1", 3))
    ]

    assert found == erased_by(log, alerts, Policy())


def test_no_label_brings_the_name_of_an_erased_session_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of the alerts named with it is labelled, and only the alerts' own partitions are read."""
    erased = events.SessionErased(session_id="s-1", timestamp=NOW, request_id="r")
    topic = TURNS.full_name(PREFIX)
    alerts = {
        "a-1": replace(ALERT, source=events.Position(topic, 0, 0)),
        "a-2": replace(ALERT, alert_id="a-2", session_id="s-2", source=events.Position(topic, 3, 0)),
    }
    read: list[tuple[str, int | None]] = []
    sent: list[bytes | None] = []

    async def latest(_: object) -> dict[str, events.AlertChanged]:
        return alerts

    async def log(_: object, name: str, *, only: int | None = None) -> AsyncIterator[ConsumerRecord]:
        read.append((name, only))
        for record in consumed([turn(0, session_id="s-1"), erased]) if only == 0 else []:
            yield record

    async def send(_: object, records: Sequence[Record]) -> None:
        sent.extend(record.key for record in records)

    monkeypatch.setattr("jobs.alerts.command.latest_alerts", latest)
    monkeypatch.setattr("jobs.alerts.labels.read_to_end", log)
    monkeypatch.setattr("jobs.alerts.command.send_to_turns", send)
    settings = load_settings(topic_prefix=PREFIX)

    with pytest.raises(ConfigurationError, match="session of alert a-1 was erased: nothing was written"):
        asyncio.run(say(settings, ["a-1", "a-2"], events.AlertLabelled, escalating=True))
    assert ([(topic, 0), (topic, 3)], []) == (read, sent)
    asyncio.run(say(settings, ["a-2"], events.AlertLabelled, escalating=True))
    assert [b"s-2"] == sent


def test_labels_are_found_among_turns() -> None:
    """A turn that speaks of the event is none, and neither is a record that cannot be used."""
    spoken = turn(0, content="what is an alert_labelled event?")
    log = consumed([spoken, label(reason="first"), turn(1), label(escalating=False)])
    broken = consumed([label()])[0]
    broken.value = broken.value[:-4]

    assert [label(reason="first"), label(escalating=False)] == labels_in([*log, broken], Policy())


def test_the_list_shows_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside each alert its own, as columns and as a line; without the option the log is not read."""
    alerts = {"a-1": ALERT, "a-2": replace(ALERT, alert_id="a-2")}

    async def latest(_: object) -> dict[str, events.AlertChanged]:
        return alerts

    async def labels(_: object) -> dict[str, events.AlertLabelled]:
        return {"a-2": label("a-2", escalating=False, reason="homework", by="anna")}

    monkeypatch.setattr("jobs.alerts.command.latest_alerts", latest)
    monkeypatch.setattr("jobs.alerts.labels.latest_labels", labels)
    shown = CliRunner().invoke(app, ["alerts", "list", "--labels", "--output", "json"])
    lines = CliRunner().invoke(app, ["alerts", "list", "--labels"]).stdout
    plain = CliRunner().invoke(app, ["alerts", "list", "--output", "json"])

    assert [(None, None), (False, "homework")] == [
        (row["escalating"], row["label_reason"]) for row in json.loads(shown.stdout)
    ]
    assert 1 == lines.count("  label    false alarm: homework (anna, 2026-03-04)")
    assert all("escalating" not in row for row in json.loads(plain.stdout))


def test_the_archive_has_the_latest_label_beside_the_alert_as_raised(writer: LakeWriter) -> None:
    """Score and rules are those by which somebody was woken; a label of an unknown alert stands alone."""
    raised = replace(ALERT, score=0.62, policy_digest="d", escalation=JUDGED)
    resolved = replace(raised, id="e-2", status=events.AlertStatus.RESOLVED, score=0.1, escalation=None)
    writer.land(buffer_of([raised, resolved], topic=ALERTS), now=NOW)
    writer.land(
        buffer_of([label(), turn(), label(escalating=False, reason="homework", by="anna"), label("a-9")]), now=NOW
    )

    assert [
        ("a-1", "s-1", "support", False, "homework", "anna", NOW, NOW, 0.62, 0.62, 0.45, "m-1", "1", "d"),
        ("a-9", "s-1", None, True, "", "", NOW, None, None, None, None, None, None, None),
    ] == ask(
        writer,
        'SELECT alert_id, session_id, app_id, escalating, reason, "by", labelled_at, fired_at, score, probability, '
        "threshold, model, policy_version, policy_digest FROM alert_labels ORDER BY alert_id",
    )


def test_a_session_that_raised_no_alert_is_labelled_where_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On its partition, in its app; the archive has it beside no alert's labels, and back-tests count it as missed."""
    monkeypatch.setenv("TURNTIDE_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TURNTIDE_TOPIC_PREFIX", PREFIX)
    (tmp_path / "archive").mkdir()
    said = [turn(number) for number in range(3)]
    sent: list[Record] = []

    async def send(_: object, records: Sequence[Record]) -> None:
        sent.extend(records)

    monkeypatch.setattr("jobs.alerts.command.send_to_turns", send)
    with closing(LakeWriter(paths(tmp_path / "archive"))) as writer:
        writer.land(buffer_of(said, partition=3), now=NOW)
        unknown = CliRunner().invoke(app, ["alerts", "label", "--session", "s-9", "--true"])
        both = CliRunner().invoke(app, ["alerts", "label", "a-1", "--session", "s-1", "--true"])
        labelled = CliRunner().invoke(app, ["alerts", "label", "--session", "s-1", "--true", "--by", "anna"])
        made = decode_input(sent[0].value, sent[0].key, NOW + timedelta(days=99_999), IntakePolicy())
        assert isinstance(made, events.AlertLabelled)
        writer.land(buffer_of([made], partition=3, first=3, expected=3, received=made.timestamp), now=NOW)

        assert [] == ask(writer, "FROM alert_labels")
        assert [("", True, "anna")] == ask(
            writer, "SELECT alert_id, escalating, \"by\" FROM controls WHERE type = 'alert_labelled'"
        )
    (judging,) = judge(traffic_of(log_of([*said, label("")])), [Contender(Policy())], ZeroEmbedder())

    assert (0, [3]) == (labelled.exit_code, [record.partition for record in sent])
    assert ("support", "s-1", "", True) == (made.app_id, made.session_id, made.alert_id, made.escalating)
    assert "no session s-9 of app default" in str(unknown.exception)
    assert "a session with --session" in str(both.exception)
    assert [(True, ())] == [(each.escalating, each.alerts) for each in judging.judged()]


def test_controls_come_back_from_the_archive(writer: LakeWriter) -> None:
    """Labels, judgements and what is done to topics, as the log had it: a replay of the archive folds it too."""
    sent = [
        label(reason="r", by="b"),
        events.TurnsJudged(
            session_id="s-1", timestamp=NOW, alert_id="a-1", judge="guard", probability=0.9, elapsed_ms=7
        ),
        events.TurnsJudged(session_id="s-1", timestamp=NOW, alert_id="a-1", judge="guard", failure="timeout"),
    ]
    kinds: tuple[Any, ...] = (events.TopicAdjusted, events.FeedbackGiven, events.TopicSummarised, events.TopicRestored)
    topics = list(map(example, kinds))
    writer.land(buffer_of([*sent, *topics]), now=NOW)
    records = [*archived_inputs(writer.con, TURNS.full_name(PREFIX))]
    found = [decode_input(each.value, each.key, NOW + timedelta(hours=1), IntakePolicy()) for each in records[:3]]

    assert (found, [each.value for each in records[3:]]) == (sent, [*map(encode, topics)])


def test_an_alert_comes_back_from_the_archive(writer: LakeWriter) -> None:
    """With every field of its judgement and evidence, and the others of its session; analysts have columns of it."""
    evidence = [events.EvidenceTurn("s-1_3", 3, 0.9, "risk 0.90", 1.25)]
    changes = [replace(ALERT, evidence=evidence, escalation=JUDGED), replace(ALERT, id="e-2", alert_id="a-0")]
    writer.land(buffer_of([*changes, replace(ALERT, id="e-3", session_id="s-2", alert_id="b")], topic=ALERTS), now=NOW)

    assert changes == archived_changes(writer.con, "a-1")
    assert [] == archived_changes(writer.con, "nothing")
    assert [("a-0", None, None, None), ("a-1", 0.62, 0.45, "m-1"), ("b", None, None, None)] == ask(
        writer, "SELECT alert_id, probability, threshold, model FROM alerts ORDER BY alert_id"
    )


def test_an_archive_of_a_newer_release_is_refused(writer: LakeWriter) -> None:
    """A struct with a field that this release does not write: nothing is dropped from it."""
    writer.con.execute("ALTER TABLE raw.alerts ADD COLUMN evidence.element.later DOUBLE")
    writer.con.execute("COMMENT ON TABLE raw.offsets IS 'newer'")

    with pytest.raises(ConfigurationError, match=r"column alerts\.evidence is STRUCT"):
        LakeWriter(writer.paths)
