"""Triage of alerts through the fold: who looks after one, until when it rests, which other it repeats."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from jobs.cli import app
from models.events import (
    AlertAcknowledged,
    AlertChanged,
    AlertStatus,
    AlertTriaged,
    ClockTicked,
    Position,
    SessionErased,
    Turn,
)
from models.partition.sessions import DecodedArrival, PartitionFold
from models.policy import Policy
from streams.index.session_memory import SessionVectorMemory
from streams.kafka.producer import Record
from streams.settings.http import TokenRole
from tests.support.command_line import InProcess, printed, reached, refused
from tests.support.entity_driver import Entities
from tests.support.lake_records import alert
from tests.support.live_made import alert as live_alert
from tests.support.live_served import LiveServed, live_token
from tests.support.loaded import loaded_embedder
from tests.support.session_driver import NOON, Session, said
from tests.support.user_partition import keep


def triaged(alert_id: str, minute: float = 1, **news: Any) -> AlertTriaged:
    """What somebody says of an alert."""
    return AlertTriaged(
        session_id="s", app_id="a", timestamp=NOON + timedelta(minutes=minute), alert_id=alert_id, by="anna", **news
    )


def alarmed(risk: float = 0.95) -> tuple[Session, str]:
    """A session with an alert."""
    session = Session()
    for turn in range(1 if risk > 0.9 else 14):
        session.say(turn, risk=risk if risk > 0.9 else min(0.04 * turn, risk))
    return session, session.alerts[0].alert_id


def test_each_news_has_a_cause_and_says_by_whom() -> None:
    """Assigned, noted, snoozed, a duplicate and none any more; what was said before it stays."""
    session, alert_id = alarmed()
    later = NOON + timedelta(minutes=40)
    for news in (
        {"assignee": "bob"},
        {"note": "asked the desk"},
        {"snoozed_until": later},
        {"duplicate_of": "other"},
        {"duplicate_of": ""},
        {"assignee": "bob"},
        {"duplicate_of": alert_id},
    ):
        session.put(triaged(alert_id, **news))
        session.store()
    session.put(triaged("another", assignee="eve"))
    session.end()

    assert [
        ("raised", "", "", None, ""),
        ("assigned", "anna", "bob", None, ""),
        ("noted", "anna", "bob", None, ""),
        ("snoozed", "anna", "bob", later, ""),
        ("duplicate", "anna", "bob", None, "other"),
        ("woken", "anna", "bob", None, ""),
        ("resolved", "", "bob", None, ""),
    ] == [(each.cause, each.by, each.assignee, each.snoozed_until, each.duplicate_of) for each in session.alerts]
    assert len(session.alerts) == len({each.id for each in session.alerts})
    assert "asked the desk" not in msgspec.json.encode(session.alerts).decode()


def test_a_resolved_alert_takes_no_triage() -> None:
    """Of a session that is over nothing is emitted: a note stands in the log alone. Nor does it put off an end."""
    session, alert_id = alarmed()
    due = session.deadline
    session.put(triaged(alert_id, 5, assignee="bob"))
    assert due == session.deadline
    session.end(minute=5)
    before = len(session.outputs)
    session.put(triaged(alert_id, 6, assignee="bob", note="late"))

    assert before == len(session.outputs)


@pytest.mark.parametrize("news", [{"snoozed_until": NOON + timedelta(hours=9)}, {"duplicate_of": "other"}])
def test_a_silenced_alert_is_not_repeated(news: dict[str, Any]) -> None:
    """It would be every half an hour while the session stays as it is."""
    loud, _ = alarmed()
    quiet, alert_id = alarmed()
    quiet.put(triaged(alert_id, **news))
    for session in (loud, quiet):
        for turn in range(1, 8):
            session.say(turn, risk=0.95, timestamp=(NOON + timedelta(minutes=20 * turn)).isoformat())

    assert "renotified" in [each.cause for each in loud.alerts]
    assert ["raised", next(iter(news)).split("_")[0]] == [each.cause for each in quiet.alerts]


def test_a_snoozed_alert_that_grows_worse_is_told_and_a_duplicate_only_when_it_becomes_critical() -> None:
    """By a step it ends the snooze; the duplicate is left to the other alert until it is critical."""
    snoozed, first = alarmed(risk=0.5)
    doubled, second = alarmed(risk=0.5)
    snoozed.put(triaged(first, 14, snoozed_until=NOON + timedelta(hours=9)))
    doubled.put(triaged(second, 14, duplicate_of="other"))
    for session in (snoozed, doubled):
        session.say(15, risk=0.85)
        session.store()
        session.say(16, risk=0.95)
    told = [(each.cause, each.severity.value, each.is_silenced) for each in doubled.alerts]

    assert ("worsened", None) in [(each.cause, each.snoozed_until) for each in snoozed.alerts[-2:]]
    assert [("duplicate", "warning", True), ("worsened", "critical", False)] == told[-2:]


def test_who_acknowledges_ends_the_snooze() -> None:
    """It is looked at now: nothing is left to wake."""
    session, alert_id = alarmed()
    session.put(triaged(alert_id, snoozed_until=NOON + timedelta(minutes=10)))
    session.put(AlertAcknowledged(session_id="s", timestamp=NOON + timedelta(minutes=2), alert_id=alert_id, by="bob"))

    assert ("acknowledged", "bob", None) == (
        session.alerts[-1].cause,
        session.alerts[-1].by,
        session.alerts[-1].snoozed_until,
    )
    assert session.state is not None
    assert session.state.due.snoozed_until is None


class TriagedPartition:
    """A partition that a fresh worker recovers before each record, and the alerts that came out."""

    def __init__(self) -> None:
        self.entities: Entities = {}
        self.alerts: list[AlertChanged] = []
        self.offset = 0

    def take(self, event: Turn | AlertTriaged | AlertAcknowledged | SessionErased | ClockTicked) -> None:
        """Fold one record."""
        fold = PartitionFold(self.entities, Policy())
        arrival = DecodedArrival(event, Position("turns.v1", 0, self.offset), event.timestamp, 0.95)
        self.offset += 1
        self.alerts += [each for each in keep(self.entities, fold, [arrival]) if isinstance(each, AlertChanged)]

    def tick(self, minute: float) -> None:
        """Let the clock of the broker say so many minutes after noon."""
        self.take(ClockTicked(session_id="clock-0", timestamp=NOON + timedelta(minutes=minute)))

    def of(self, app_id: str) -> list[AlertChanged]:
        """What came of an app."""
        return [each for each in self.alerts if each.app_id == app_id]


def two_tenants() -> TriagedPartition:
    """Two apps with an alert each, in sessions of one id."""
    partition = TriagedPartition()
    for app_id in ("a", "b"):
        partition.take(said(0, app_id=app_id, risk=0.95))
    return partition


def test_a_snooze_ends_by_the_clock_of_events_also_after_a_restart() -> None:
    """Nothing arrives but ticks: at its end, and once, the alert fires anew, of each tenant under an id of its own."""
    partition = two_tenants()
    until = NOON + timedelta(minutes=10)
    for app_id in ("a", "b"):
        snoozed = triaged(partition.of(app_id)[0].alert_id, snoozed_until=until)
        partition.take(msgspec.structs.replace(snoozed, app_id=app_id))
    for minute in (9.9, 10, 11):
        partition.tick(minute)

    for app_id in ("a", "b"):
        woken = partition.of(app_id)[-1]
        assert ["raised", "snoozed", "woken"] == [each.cause for each in partition.of(app_id)]
        assert (AlertStatus.FIRING, 2, until) == (woken.status, woken.notifications, woken.timestamp)
    assert len(partition.alerts) == len({each.id for each in partition.alerts})


def test_an_alert_whose_session_ends_meanwhile_is_not_woken() -> None:
    """One tick passes both: it is told once, as resolved. Triage of another app's alert changes nothing of it."""
    partition = two_tenants()
    partition.take(triaged(partition.of("b")[0].alert_id, assignee="eve"))
    assert ["raised", "raised"] == [each.cause for each in partition.alerts]
    partition.take(triaged(partition.of("a")[0].alert_id, snoozed_until=NOON + timedelta(minutes=10)))
    partition.tick(24 * 60)

    assert ["raised", "snoozed", "resolved"] == [each.cause for each in partition.of("a")]


def test_an_erasure_takes_the_triage_with_it() -> None:
    """Nobody is named in what is told of it, and nothing wakes later."""
    partition = two_tenants()
    alert_id = partition.of("a")[0].alert_id
    partition.take(triaged(alert_id, assignee="bob", snoozed_until=NOON + timedelta(minutes=10)))
    partition.take(SessionErased(session_id="s", app_id="a", timestamp=NOON, request_id="r"))
    partition.tick(11)

    last = partition.of("a")[-1]
    assert ("erased", "", None, "") == (last.cause, last.assignee, last.snoozed_until, last.by)
    assert "snoozed" == partition.of("a")[-2].cause


def test_the_command_writes_where_the_sessions_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    """For all that are named or, if one does not take it, for none; what is left out stays as it is."""
    of = {name: alert(f"e-{name}", AlertStatus.FIRING) for name in ("a-1", "a-2", "a-3")}
    of = {name: msgspec.structs.replace(each, alert_id=name) for name, each in of.items()}
    of["a-3"] = msgspec.structs.replace(of["a-3"], app_id="other")
    sent: list[Record] = []

    async def latest(_: object) -> dict[str, AlertChanged]:
        return of

    async def send(_: object, records: Sequence[Record]) -> None:
        sent.extend(records)

    monkeypatch.setattr("jobs.alerts.command.latest_alerts", latest)
    monkeypatch.setattr("jobs.alerts.command.send_to_turns", send)

    def run(*words: str) -> int:
        return CliRunner().invoke(app, ["alerts", "triage", *words]).exit_code

    undone = [
        run("a-1"),
        run("a-1", "unknown", "--assign", "bob"),
        run("a-1", "--repeats", "a-1"),
        run("a-1", "--repeats", "a-3"),
    ]
    nothing = list(sent)
    done = [run("a-1", "a-2", "--snooze", "90", "--by", "anna"), run("a-2", "--repeats", "a-1", "--assign", "")]
    said_of = [msgspec.json.decode(each.value or b"", type=AlertTriaged) for each in sent]

    assert ([0, 0], []) == (done, nothing)
    assert all(undone)
    assert [("a-1", "anna", None), ("a-2", "anna", None), ("a-2", "", "")] == [
        (each.alert_id, each.by, each.assignee) for each in said_of
    ]
    assert all(
        each.snoozed_until and abs(each.snoozed_until - each.timestamp - timedelta(minutes=90)) < timedelta(minutes=1)
        for each in said_of[:2]
    )
    assert ("a-1", None) == (said_of[2].duplicate_of, said_of[2].snoozed_until)


def test_the_command_lists_similar_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the running role says, to a token of the app, by the first of equal turns; another tenant's alert is none."""
    served = LiveServed({"ops-a": (TokenRole.OPERATOR, ["a"], False)})
    memory = SessionVectorMemory(served.store, loaded_embedder())
    turns = [
        said(number, f"The {what} is at the harbour.", session_id=session, app_id=app_id)
        for number in (4, 1, 2)
        for session, app_id, what in (("s", "a", "boat"), ("like", "a", "ship"), ("theirs", "b", "boat"))
    ]
    asyncio.run(memory.add_turns(turns, loaded_embedder().embed([each.content for each in turns])))
    for app_id in ("a", "b"):
        served.page.board.take_alert(live_alert("s", f"alert-{app_id}", app=app_id), 1)
    reached(InProcess(served.app()), monkeypatch)
    monkeypatch.setenv("TURNTIDE_TOKEN", live_token("ops-a"))

    assert [("like", 1)] == [(each["session_id"], each["turn"]) for each in printed("alerts", "similar", "alert-a")]
    assert "no such alert" in refused("alerts", "similar", "alert-b")


def test_the_command_saves_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists, saves and lets go by the running role, for the apps of the token alone; an app must be named."""
    served = LiveServed({"ops-a": (TokenRole.OPERATOR, ["a"], False), "ops-b": (TokenRole.OPERATOR, ["b"], False)})
    reached(InProcess(served.app()), monkeypatch)
    monkeypatch.setenv("TURNTIDE_TOKEN", live_token("ops-a"))
    command = ("alerts", "searches")

    saved = printed(*command, "--app", "a", "--save", "urgent", "--severity", "critical", "--harm", "fraud")
    assert [each["title"] for each in saved["searches"]] == ["urgent"]
    (found,) = printed(*command)
    assert (found["app_id"], found["show"], found["severity"], found["category"]) == ("a", "open", "critical", "fraud")
    assert "--app" in refused(*command, "--save", "all")
    assert refused(*command, "--app", "b", "--save", "all")

    monkeypatch.setenv("TURNTIDE_TOKEN", live_token("ops-b"))
    assert printed(*command) == []
    monkeypatch.setenv("TURNTIDE_TOKEN", live_token("ops-a"))
    assert printed(*command, "--app", "a", "--let-go", "urgent")["searches"] == []
