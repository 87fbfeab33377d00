"""Whose record it is: one row for each kind of event, and what is tied to a subject without naming it."""

from datetime import timedelta
from typing import TypeVar

import pytest
from msgspec import Struct
from msgspec.structs import replace

from models import events
from models.entities import TOPIC_OF
from models.erasure import ErasureSubject, sessions_of
from models.events import DEFAULT_APP, DeadLetter, SessionName
from models.wire.envelope import key_of
from tests.support.data_files import data_file
from tests.support.golden_text import assert_text
from tests.support.lake_records import example
from tests.support.subjects import of_session

APP, USER, SESSION = "shop-assistant", "user-17", "order-4711"
"""Whom the contracts' examples tell of."""

SUBJECTS = {
    "session": of_session(SESSION, app_id=APP),
    "user": ErasureSubject("user", APP, USER),
    "app": ErasureSubject("app", APP),
}
OTHERS = {
    "session": of_session("other", app_id=APP),
    "session elsewhere": ErasureSubject("session", sessions=frozenset({SessionName("other", SESSION)})),
    "user elsewhere": ErasureSubject("user", "other", USER),
    "user": ErasureSubject("user", APP, "other"),
    "app": ErasureSubject("app", "other"),
}
_Event = TypeVar("_Event", bound=Struct)


def letter(*, key: bytes | None = None, value: bytes | None = None) -> DeadLetter:
    """A refused record."""
    return replace(example(DeadLetter), key=key, value=value)


def test_whose_an_event_is() -> None:
    """Each kind by session, user and app, and never somebody else's; a new kind must say whose it is."""
    events_of = {kind.__name__: example(kind) for kind in TOPIC_OF}
    rows = [
        f"{name}: {' '.join(scope for scope, subject in SUBJECTS.items() if subject.concerns(event))}"
        for name, event in events_of.items()
    ]

    assert_text("erasure_subjects", "\n".join(rows))
    assert [] == [name for name, event in events_of.items() if any(each.concerns(event) for each in OTHERS.values())]


def test_a_user_of_all_apps() -> None:
    """Without an app the user is forgotten in each."""
    everywhere = ErasureSubject("user", user_id=USER)

    assert everywhere.concerns(example(events.Turn))
    assert everywhere.concerns(replace(example(events.Turn), app_id="another"))
    assert not everywhere.concerns(replace(example(events.Turn), user_id="another"))


@pytest.mark.parametrize(
    "event",
    [
        replace(example(events.AppMemoryChanged), session_id="o", user_id="o", related_conversations=["a", SESSION]),
        replace(example(events.EpisodeCompressed), session_id="o"),
        replace(example(events.EpisodeRequested), session_id="o"),
        replace(example(events.UserMemoryChanged), session_id="o", short_term=[events.SessionTurns(SESSION, [1])]),
    ],
    ids=lambda event: type(event).__name__,
)
def test_sessions_that_are_listed(event: Struct) -> None:
    """What was merged from a session, or goes over it, is the session's too."""
    assert SUBJECTS["session"].concerns(event)
    assert not OTHERS["session"].concerns(event)


MEMORY = replace(example(events.AppMemoryChanged), related_conversations=[])
"""Memory 3, of the session."""
STRANGER = {"session_id": "a stranger's", "user_id": "a stranger"}
OTHER_MEMORY = replace(MEMORY, memory_id=4, **STRANGER)
FACT = example(events.FactChanged)
LATER_FACT = replace(
    FACT,
    session_id="a stranger's",
    valid_from=FACT.valid_from + timedelta(days=1),
    history=[events.PastFact(value=FACT.value, confidence=1, valid_from=FACT.valid_from, valid_until=FACT.valid_from)],
)


def untied(kind: type[_Event], **fields: object) -> _Event:
    """The example of a kind as if somebody else's conversation had caused it."""
    return replace(example(kind), session_id="a stranger's", **fields)


@pytest.mark.parametrize(
    ("cause", "tied"),
    [
        (MEMORY, replace(MEMORY, **STRANGER)),
        (MEMORY, untied(events.AppMemoriesCompacted)),
        (MEMORY, untied(events.CompactionRequested)),
        (MEMORY, example(events.CompactionDecided)),
        (MEMORY, replace(example(events.MemoryEdited), memory_id=MEMORY.memory_id)),
        (MEMORY, replace(example(events.MemoryDeleted), memory_id=MEMORY.memory_id)),
        (example(events.MemoryRequested), example(events.MemoryProposed)),
        (example(events.CompactionRequested), replace(example(events.CompactionDecided), target_memory_id=9)),
        (example(events.EpisodeCompressed), example(events.EpisodeSummarised)),
        (example(events.EpisodeCompressed), untied(events.EpisodeRequested, session_ids=[])),
        (untied(events.EpisodeRequested), example(events.EpisodeSummarised)),
        (FACT, LATER_FACT),
    ],
    ids=lambda event: type(event).__name__,
)
def test_what_is_tied(cause: Struct, tied: Struct) -> None:
    """Texts that name no session: known by the number of a memory, request or episode, or by since when a value was."""
    subject = SUBJECTS["session"]

    assert not subject.concerns(tied)
    assert subject.follow([cause]).concerns(tied)
    assert not OTHERS["session"].follow([cause]).concerns(tied)


def test_ties_do_not_spread_by_lists() -> None:
    """A compaction lists all memories of the space: those of others stay others'."""
    compacted = untied(events.AppMemoriesCompacted)
    followed = SUBJECTS["session"].follow([MEMORY, compacted, OTHER_MEMORY, LATER_FACT])

    assert followed.concerns(compacted)
    assert not followed.concerns(OTHER_MEMORY)


def test_a_confirmed_value_is_whose_it_was() -> None:
    """A session that confirms what another one said did not bring it: the other's record stays."""
    said = replace(FACT, session_id="other", cause="stored", history=[])

    assert not SUBJECTS["session"].follow([replace(FACT, cause="confirmed")]).concerns(said)


@pytest.mark.parametrize(("scope", "key", "value", "expected"), data_file("erasure")["refused"])
def test_dead_letters(scope: str, key: str, value: str, expected: bool) -> None:
    """Only bytes are known of a refused record: its key, or an id as a JSON string."""
    assert SUBJECTS[scope].concerns(letter(key=key.encode(), value=value.encode() or None)) is expected


def test_refused_records_without_an_app_are_the_default_apps() -> None:
    """Whoever names no app is taken for its producer; not what names another one."""
    session, user = of_session(SESSION, app_id=DEFAULT_APP), ErasureSubject("user", DEFAULT_APP, USER)

    assert session.concerns(letter(key=SESSION.encode()))
    assert session.concerns(letter(value=b'{"session_id":"order-4711"'))
    assert not session.concerns(letter(key=SESSION.encode(), value=b'{"app_id":"another"'))
    assert not session.concerns(letter(key=f"session:{APP}/{SESSION}".encode()))
    assert user.concerns(letter(value=b'{"user_id":"user-17", broken'))
    assert not user.concerns(letter(value=b'{"user_id":"user-17","app_id":"another"'))


def test_events_without_an_app_are_of_the_only_session_of_their_id() -> None:
    """Control events of earlier releases: the default app's, else the only one's; nobody's while several have one."""
    ended = replace(example(events.SessionEnded), app_id="")
    here, there, by_default = (SessionName(app_id, SESSION) for app_id in (APP, "other", DEFAULT_APP))

    def goes(mine: SessionName, *known: SessionName) -> bool:
        return ErasureSubject("session", sessions=sessions_of([mine], known)).concerns(ended)

    assert [True, True, False, False] == [goes(here), goes(here, here), goes(here, there), goes(here, by_default)]
    assert [True, True] == [goes(by_default), goes(by_default, here)]
    assert not ErasureSubject("session", sessions=sessions_of([here])).concerns(replace(ended, app_id="other"))


def test_state_of_sessions_is_owned() -> None:
    """By app and id, and by the id alone as earlier releases kept it; an id may hold a slash."""
    subject = of_session("a/b", app_id="shop/eu")

    assert subject.owns_session("session:shop%2Feu/a/b")
    assert subject.owns_session("a/b")
    assert not subject.owns_session("session:shop/a/b")
    assert not of_session("b", app_id="a").owns_session("a/b")


def test_dead_letters_in_escaped_json() -> None:
    """Some producers escape what is not ASCII."""
    subject = ErasureSubject("user", user_id="jörg")

    assert subject.concerns(letter(value=rb'{"user_id":"j\u00f6rg"}'))
    assert subject.concerns(letter(value='{"user_id":"jörg"}'.encode()))
    assert not subject.concerns(letter(value=b'{"user_id":"jorg"}'))


@pytest.mark.parametrize(("key", "expected"), data_file("erasure")["keys"])
def test_keys(key: str, expected: str) -> None:
    """Users and spaces that are wholly the subject's, and what is kept below them."""
    subjects = {
        "user": ErasureSubject("user", "a/b", "anna"),
        "all": ErasureSubject("user", user_id="anna"),
        "app": ErasureSubject("app", "a/b"),
        "session": of_session("anna", app_id="a/b"),
    }

    assert expected.split() == [name for name, subject in subjects.items() if subject.owns(key)]


def test_keys_of_outputs_are_owned() -> None:
    """Whatever the memory role writes of a user goes by its key alone."""
    fact, episode = key_of(example(events.FactChanged)), key_of(example(events.EpisodeCompressed))
    stats = key_of(example(events.UserMemoryChanged))

    assert [True] * 3 == [SUBJECTS["user"].owns((key or b"").decode()) for key in (fact, episode, stats)]
