"""Two apps with the same ids in one archive: each has its own rows in every view, and an erasure takes one's alone."""

# ruff: noqa: S608 - tables and views are constants

import asyncio
from contextlib import closing
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from models import events
from models.entities import REGISTRY, carried_by
from models.erasure import ErasureSubject, sessions_of
from models.events import DEFAULT_APP, AlertChanged, AlertLabelled, AlertStatus, EraseRequested, SessionName
from models.events.topics import ALERTS, CONVERSATION_TOPICS, DEAD_LETTERS, EPISODES, PROFILES, TURNS, Topic
from streams.archive.erasing import erase
from streams.archive.inputs import apps_of, archived_changes, archived_inputs
from streams.archive.maintenance import maintain
from streams.archive.schema import FORGETTING, RAW, SKIPPED, TABLES
from streams.archive.verify import verify
from streams.archive.views.definitions import VIEW_NAMES
from streams.archive.views.published import columns_of_views
from streams.archive.writer import LakeWriter
from streams.erase.archive import WriterArchive
from tests.support.lake_records import (
    NOW,
    PREFIX,
    alert,
    buffer_of,
    copied,
    example,
    land_all,
    paths,
    profile,
    topic,
    turn,
)
from tests.unit.test_lake_erasing import rows_of

OURS, THEIRS = "shop-assistant", "bank"
"""The contracts' examples are the first one's."""
SESSION, USER = "order-4711", "user-17"
LETTER = example(events.DeadLetter)


def of_app(event: Any, app_id: str) -> Struct:
    """The same event of an app: all other ids are alike, but for the event's own, which is of its place in the log."""
    if isinstance(event, events.DeadLetter):
        value = f'{{"app_id":"{app_id}","session_id":"{SESSION}","user_id":"{USER}", broken'
        return replace(event, id=f"{event.id} {app_id}", key=SESSION.encode(), value=value.encode())
    names: dict[str, str] = {"app_id": app_id} if hasattr(event, "app_id") else {}
    if hasattr(event, "id"):
        names["id"] = f"{event.id} {app_id}"
    other: Struct = replace(event, **names)
    return other


def examples(archived: Topic) -> list[Struct]:
    """The contracts' example of everything that is kept of a topic and is an app's."""
    kept = (kind for kind in carried_by(archived) if not issubclass(kind, FORGETTING))
    return [example(kind) for kind in kept if kind is events.DeadLetter or "app_id" in kind.__struct_fields__]


_KINDS = {archived: found for archived in REGISTRY.archived_topics if (found := examples(archived))}


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything of both apps, ours first."""
    folder = tmp_path_factory.mktemp("both")
    with closing(LakeWriter(paths(folder))) as writer:
        land_all(
            writer,
            {
                at: [of_app(event, app_id) for app_id in (OURS, THEIRS) for event in found]
                for at, found in _KINDS.items()
            },
        )
        maintain(writer, now=NOW, keep_replaced=timedelta(0))
    return folder


OUR_SESSIONS = sessions_of([SessionName(OURS, SESSION)], [SessionName(THEIRS, SESSION)])
SUBJECTS = {
    "session": ErasureSubject("session", sessions=OUR_SESSIONS),
    "user": ErasureSubject("user", OURS, USER, OUR_SESSIONS),
    "app": ErasureSubject("app", OURS, "", OUR_SESSIONS),
}


def shown(writer: LakeWriter, app_id: str) -> dict[str, list[Any]]:
    """What every view with a column of apps has of one."""
    views = [view for view in VIEW_NAMES if "app_id" in columns_of_views()[view]]
    return {
        view: writer.con.execute(f"FROM {view} WHERE app_id = ? ORDER BY ALL", [app_id]).fetchall() for view in views
    }


@pytest.fixture(scope="module")
def theirs(landed: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What is shown of their app before anything is erased."""
    with closing(copied(landed, tmp_path_factory.mktemp("theirs"))) as writer:
        return shown(writer, THEIRS)


@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS.keys())
def test_an_erasure_takes_no_row_of_another_app(
    landed: Path, theirs: dict[str, list[Any]], tmp_path: Path, subject: ErasureSubject
) -> None:
    """Of all kinds, with every id alike: by the rule, by the archive's SQL, and when it is done."""
    writer = copied(landed, tmp_path)
    rows, found = sum(len(each) for each in theirs.values()), rows_of(writer, subject)

    assert rows > len(VIEW_NAMES)
    assert len(found) > 15
    assert [] == [(table, offset) for table, offset in found if offset >= len(_KINDS[TABLES[table].topic])]
    both = [of_app(event, THEIRS) for events in _KINDS.values() for event in events]
    assert [] == [event for event in both if subject.concerns(event)]

    erase(writer, subject, now=NOW)

    assert theirs == shown(writer, THEIRS)
    assert writer.con.execute("SELECT id FROM dead_letters").fetchall() == [(f"{LETTER.id} {THEIRS}",)]
    assert [] == verify(writer.con, prefix=PREFIX, now=NOW).findings
    writer.close()


def refused_records() -> list[events.DeadLetter]:
    """Refused records with every mixture of key, app, session and user in them."""
    keys = [b"x", SESSION.encode(), f"session:{OURS}/{SESSION}".encode(), f"session:{THEIRS}/{SESSION}".encode()]
    keys += [f"user:{OURS}/{USER}".encode(), f"app:{THEIRS}".encode()]
    apps = ["", *(f'"app_id"{gap}"{app}",' for app in (OURS, THEIRS, DEFAULT_APP) for gap in (":", " :\n\t", ":"))]
    names = ["", f'"session_id":"{SESSION}"', f'"user_id":"{USER}"', f'"user_id":"{OURS}","x":"\\u00fc\x80"']
    values = [f"{{{app}{name}".encode("latin-1") for app, name in product(dict.fromkeys(apps), names)]
    return [
        replace(LETTER, id=str(n), offset=n, key=key, value=value)
        for n, (key, value) in enumerate(product(keys, [*values, None]))
    ]


def test_refused_records_go_as_the_rule_says(writer: LakeWriter) -> None:
    """Whoever is forgotten, the SQL takes the very records that the rule does; each app's its own."""
    letters = refused_records()
    land_all(writer, {DEAD_LETTERS: letters})
    apps = (OURS, THEIRS, DEFAULT_APP)
    subjects = [
        *(ErasureSubject("session", sessions=frozenset({SessionName(app, SESSION)})) for app in apps),
        *(ErasureSubject("user", app, USER, frozenset({SessionName(app, SESSION)})) for app in (*apps, "")),
        *(ErasureSubject("app", app, "", frozenset({SessionName(app, SESSION)})) for app in apps),
    ]
    found = [{offset for table, offset in rows_of(writer, subject) if table == "dead_letters"} for subject in subjects]

    assert [{n for n, letter in enumerate(letters) if subject.concerns(letter)} for subject in subjects] == found
    assert all(found)
    assert not found[0] & found[1]
    assert not found[0] & found[2]


@pytest.fixture
def both(writer: LakeWriter) -> LakeWriter:
    """A session of the same id and topics in two apps; the other one said less, has closed, and had an alert."""
    said = [turn(0), turn(0, app_id=THEIRS, content="theirs"), turn(1), turn(2), turn(2, content="again")]
    writer.land(buffer_of(said), now=NOW)
    profiles = [profile("p-1", turns=3), replace(profile("p-2", turns=1), app_id=THEIRS, open=False)]
    writer.land(buffer_of(profiles, topic=PROFILES), now=NOW)
    changes = [
        topic("e-1", "gone", at_offset=0, active_turns=[0]),
        replace(topic("e-2", "gone", at_offset=1, active_turns=[0], kept=False), app_id=THEIRS),
        topic("e-3", "here", at_offset=2, active_turns=[1]),
    ]
    writer.land(buffer_of(changes, topic=CONVERSATION_TOPICS), now=NOW)
    writer.land(buffer_of([replace(alert("a", AlertStatus.FIRING), app_id=THEIRS)], topic=ALERTS), now=NOW)
    ended = replace(example(events.EpisodeClosed), session_id="s-1", app_id=THEIRS, timestamp=NOW)
    writer.land(buffer_of([ended], topic=EPISODES), now=NOW)
    return writer


@pytest.mark.parametrize("settled", [False, True], ids=["at once", "settled"])
def test_views_keep_two_apps_sessions_apart(both: LakeWriter, settled: bool) -> None:
    """Turns, risk, sessions, profiles and topics: none is taken for the other's, nor for its repeat."""
    if settled:
        maintain(both, now=NOW, keep_replaced=timedelta(0))

    def ask(sql: str) -> list[Any]:
        return both.con.execute(f"{sql} ORDER BY ALL").fetchall()

    assert ask("SELECT app_id, turn, content FROM turns") == [
        (THEIRS, 0, "theirs"),
        ("support", 0, "what about 0?"),
        ("support", 1, "what about 1?"),
        ("support", 2, "what about 2?"),
    ]
    assert ask("SELECT app_id, count(*) FROM risk_points GROUP BY ALL") == [(THEIRS, 1), ("support", 3)]
    assert ask('SELECT app_id, turns, "open", ended_at IS NOT NULL, alerts FROM sessions') == [
        (THEIRS, 1, False, True, 1),
        ("support", 3, True, False, 0),
    ]
    assert ask("SELECT app_id, topic_id, kept FROM topics") == [
        (THEIRS, "gone", False),
        ("support", "gone", True),
        ("support", "here", True),
    ]
    assert ask("SELECT app_id, turn, topic_id FROM topic_turns") == [
        (THEIRS, 0, "gone"),
        ("support", 0, "gone"),
        ("support", 1, "here"),
        ("support", 2, "here"),
    ]
    checked = {table.table: table.repeats for table in verify(both.con, prefix=PREFIX, now=NOW).tables}
    assert (checked["turns"], checked["risk_points"]) == (1, 0)


def test_an_alert_comes_back_with_its_own_session_alone(writer: LakeWriter) -> None:
    """Another app's alert of a session of this id is another session's."""
    mine, other = alert("a", AlertStatus.FIRING), replace(alert("b", AlertStatus.FIRING), alert_id="a-2", app_id=THEIRS)
    writer.land(buffer_of([mine, other], topic=ALERTS), now=NOW)

    assert [["a"], ["b"]] == [[each.id for each in archived_changes(writer.con, name)] for name in ("a-1", "a-2")]


def label(app_id: str, *, escalating: bool, session_id: str = "s-1") -> AlertLabelled:
    """A label of alert `a-1`."""
    return replace(example(AlertLabelled), session_id=session_id, app_id=app_id, alert_id="a-1", escalating=escalating)


def test_nobody_labels_another_apps_alert(writer: LakeWriter) -> None:
    """A label says something of an alert only if it names the alert's session and app, or, as of old, no app."""
    raised: AlertChanged = alert("a", AlertStatus.FIRING)
    writer.land(buffer_of([raised], topic=ALERTS), now=NOW)
    labels = [label("", escalating=True), label("support", escalating=False), label(THEIRS, escalating=True)]
    writer.land(buffer_of([*labels, label("support", escalating=True, session_id="s-2")]), now=NOW)
    found = writer.con.execute("SELECT escalating FROM alert_labels WHERE fired_at IS NOT NULL").fetchall()

    assert [(False,)] == found
    assert writer.con.execute("SELECT count(*) FROM alert_labels").fetchall() == [(3,)]


async def test_sessions_of_a_user_are_those_of_the_users_app(both: LakeWriter) -> None:
    """Somebody else's turns under the same id are no session of the user's; a session is asked for with its app."""
    archive = WriterArchive(both, asyncio.Lock(), lambda: None, both.paths.catalog.parent)

    async def spoke(**names: Any) -> set[str]:
        scope: Any = "user" if "user_id" in names else "session" if "session_id" in names else "app"
        wanted = EraseRequested(request_id="r", timestamp=NOW, scope=scope, **names)
        return {f"{app_id} {session_id}" for session_id, app_id, *_ in await archive.sessions_of(wanted)}

    assert {"support s-1"} == await spoke(user_id="u-1", app_id="support")
    assert {"support s-1", f"{THEIRS} s-1"} == await spoke(user_id="u-1") == await spoke(session_id="s-1")
    assert {f"{THEIRS} s-1"} == await spoke(session_id="s-1", app_id=THEIRS) == await spoke(app_id=THEIRS)
    assert {SessionName("support", "s-1"), SessionName(THEIRS, "s-1")} == await archive.namesakes_of(
        [SessionName("another", "s-1"), SessionName("support", "s-2")]
    )
    assert [THEIRS, "support"] == apps_of(both.con, "s-1")


def test_control_events_of_an_older_archive_name_no_app(writer: LakeWriter) -> None:
    """Their table gets the column; they come back as they were, and go with the only session of their id."""
    ended = [events.SessionEnded(session_id="s-1", timestamp=NOW), events.SessionEnded(session_id="s-2", timestamp=NOW)]
    writer.con.execute(f"ALTER TABLE {RAW}.controls SET PARTITIONED BY (date)")
    writer.land(buffer_of(ended), now=NOW)
    for column in ("app_id", "app"):
        writer.con.execute(f"ALTER TABLE {RAW}.controls DROP COLUMN {column}")
    writer.con.execute("COMMENT ON TABLE raw.offsets IS 'older'")
    newer = LakeWriter(writer.paths)
    later = replace(ended[0], app_id="support")
    newer.land(buffer_of([later], first=2, expected=2), now=NOW)
    records = [record.value for record in archived_inputs(newer.con, TURNS.full_name(PREFIX))]
    subject = ErasureSubject("session", sessions=sessions_of([SessionName("support", "s-1")]))
    maintain(newer, now=NOW, keep_replaced=timedelta(0), everything=True)
    erase(newer, subject, now=NOW)
    left = newer.con.execute("SELECT session_id, app_id FROM controls").fetchall()
    newer.close()

    assert [False, False, True] == [b'"app_id":"support"' in record for record in records]
    assert [("s-2", None)] == left


def test_skipped_records_are_the_apps_that_they_name(writer: LakeWriter) -> None:
    """Undecodable ones are kept by their bytes alone."""
    values = [f'{{"app_id":"{app_id}","session_id":"s-1"'.encode() for app_id in ("support", THEIRS)]
    writer.land(buffer_of([*values, b'{"session_id":"s-1"'], topic=PROFILES), now=NOW)
    erase(writer, ErasureSubject("session", sessions=frozenset({SessionName("support", "s-1")})), now=NOW)
    kept = writer.con.execute(f"SELECT first_offset FROM {RAW}.{SKIPPED} WHERE value IS NOT NULL ORDER BY 1").fetchall()

    assert [(1,), (2,)] == kept
