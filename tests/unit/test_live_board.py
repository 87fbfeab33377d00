"""What the live page knows: the latest of each session and alert, within bounds, and nothing that was erased."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import AmbiguousApp
from models.events import AlertStatus, Contribution, Mode, SessionName, Severity, SignalShare
from models.events.erase import EraseRequested, EraseScope
from models.policy import NotifyPolicy
from streams.api.live.board import LiveBoard
from streams.api.live.known import MOST_ALERTS, SPARK_POINTS, KnownAlert
from streams.api.live.messages import AlertRow, Row
from streams.api.live.timeline import alert_detail
from tests.support.live_made import AT, alert, at_ms, profile, segment

MOST = 1_000
S = SessionName("a", "s")


def name_of(row: Row | AlertRow) -> SessionName:
    """Its session."""
    return SessionName(row.app_id, row.session_id)


def row_of(board: LiveBoard) -> Row:
    """The row of session `s`, which is there."""
    row = board.row(S)
    assert row is not None
    return row


def everything(_app: str) -> bool:
    """A caller of all apps."""
    return True


def test_a_row_is_the_last_profile_with_the_scores_of_the_last_turns() -> None:
    """Points gather over profiles; a point that comes again is one point; the oldest go."""
    board = LiveBoard()
    for first in range(0, 60, 10):
        board.take_profile(profile(scores=[0.01 * n for n in range(first, first + 10)], first=first), at_ms())
    board.take_profile(profile(scores=[0.7], first=59, mode=Mode.WATCH), at_ms())
    row = row_of(board)

    assert (row.risk, row.mode, row.turns, row.last_turn, row.slope) == (0.7, "watch", 60, 59, 0.05)
    assert len(row.spark) == SPARK_POINTS
    assert row.spark == [pytest.approx(0.01 * n) for n in range(20, 59)] + [0.7]


def test_no_text_is_kept() -> None:
    """Neither summaries nor words that a profile counts: the page's memory holds ids and numbers."""
    board = LiveBoard()
    board.take_profile(profile(), at_ms())
    board.take_segment(segment(), at_ms())
    known = board._sessions[S]
    held = msgspec.json.encode([known.profile, known.segments[0]]).decode()

    assert "parcels" not in held
    assert "what was said" not in held
    assert [(0, 9, 900, 100)] == [
        (each.first_turn, each.last_turn, each.tokens_before, each.tokens_after) for each in board.segments(S)
    ]


def test_a_new_life_of_a_session_begins_anew() -> None:
    """A session that was released and comes again has its own spark and segments."""
    board, later = LiveBoard(), AT + timedelta(days=2)
    board.take_profile(profile(scores=[0.5] * 9), at_ms())
    board.take_segment(segment(), at_ms())
    board.take_profile(profile(scores=[0.1], at=later, started_at=later), at_ms(later))
    row = row_of(board)

    assert (row.spark, board.segments(S)) == ([0.1], [])


def test_a_row_shows_the_gravest_alert_that_is_not_resolved() -> None:
    """Critical before warning; resolved ones only where there is no other; at most eight are kept."""
    board = LiveBoard()
    board.take_profile(profile(), at_ms())
    shown = []
    for number, change in enumerate(
        [
            alert(alert_id="1"),
            alert(alert_id="2", severity=Severity.WARNING, fired_at=AT + timedelta(minutes=1)),
            alert(alert_id="1", status=AlertStatus.RESOLVED),
            alert(alert_id="2", status=AlertStatus.RESOLVED),
        ]
    ):
        board.take_alert(change, at_ms() + number)
        shown += [(each.alert_id, each.status) for each in [row_of(board).alert] if each is not None]
    for number in range(20):
        board.take_alert(alert(alert_id=f"more-{number}"), at_ms())

    assert shown == [("1", "firing"), ("1", "firing"), ("2", "firing"), ("2", "resolved")]
    assert [f"more-{n}" for n in range(12, 20)] == [each.event.alert_id for each in board.alerts(S)]
    assert len(board._alerts) == MOST_ALERTS
    assert board.alert("1") is None


def test_a_label_stays_with_its_alert_through_changes() -> None:
    """A label may come before or after a change; one of an unknown alert changes nothing."""
    board = LiveBoard()
    board.take_alert(alert(), at_ms(), "0" * 31 + "1")
    board.take_label("alert-1", escalating=False)
    board.take_label("nobody's", escalating=True)
    board.take_alert(alert(status=AlertStatus.ACKNOWLEDGED, cause="acknowledged"), at_ms())
    (row,) = board.since(0, everything, MOST).alerts

    assert (row.label, row.status, row.probability, row.evidence) == (False, "acknowledged", 0.9123, [1])


@pytest.mark.parametrize("judged", [True, False])
def test_an_alert_is_shown_by_the_signals_that_made_it(judged: bool) -> None:
    """By the model's where it judged, with the shares that raise it; the source formulas' where they decided."""
    seeds = [SignalShare("suspicion", 0.9, 1.0)]
    raising = [
        Contribution(name, 0.9, added, 0.1, False) for name, added in (("run", 1.0), ("level", 3.0), ("demands", -1.0))
    ]
    told = alert(judged=judged, signals=seeds)
    if told.escalation is not None:
        told = msgspec.structs.replace(told, escalation=msgspec.structs.replace(told.escalation, contributions=raising))
    shown = alert_detail(KnownAlert(told, 1, None, None), NotifyPolicy()).signals

    expected = [("level", 0.75), ("run", 0.25)] if judged else [("suspicion", 1.0)]
    assert expected == [(each.name, each.share) for each in shown]


@pytest.mark.parametrize("status", AlertStatus)
def test_a_resolved_alert_has_no_next_step(status: AlertStatus) -> None:
    """As in every sink: nobody is to end a session that has calmed down."""
    shown = alert_detail(KnownAlert(alert(status=status), 1, None, None), NotifyPolicy())

    assert bool(shown.next_step) is (status is not AlertStatus.RESOLVED)


@pytest.mark.parametrize("first", ["erased", "session"])
def test_an_alert_that_was_erased_is_no_more(first: str) -> None:
    """Whichever is read first, the alert's end or the erasure: neither brings the session back."""
    board, fired = LiveBoard(), alert(alert_id="x")
    board.take_profile(profile(), 1)
    board.take_alert(fired, 2)
    ended = msgspec.structs.replace(fired, cause="erased", status=AlertStatus.RESOLVED)
    if first == "session":
        board.erase_session(S, 5)
    board.take_alert(ended, 6)
    row = board.row(S)

    assert (board.alert("x"), board.alerts(S)) == (None, [])
    assert (row is None) == (first == "session")
    assert row is None or row.alert is None


def test_which_session_is_meant_where_no_app_is_named() -> None:
    """The only one that may be read, or the default app's; of several others none."""
    board = LiveBoard()
    for app, sessions in {"a": "13", "b": "123", "c": "4", "default": "3"}.items():
        for session in sessions:
            board.take_profile(profile(session, app=app), 1)

    assert board.named("1", lambda app: app == "a") == SessionName("a", "1")
    assert board.named("2", everything) == SessionName("b", "2")
    assert board.named("3", everything) == SessionName("default", "3")
    assert board.named("4", lambda app: app == "a") is None
    with pytest.raises(AmbiguousApp, match="give app_id"):
        board.named("1", everything)


class Reader:
    """Applies pages of a board, as a page in a browser does."""

    def __init__(self, board: LiveBoard, most: int) -> None:
        self.sessions: dict[SessionName, float] = {}
        self.alerts: dict[str, SessionName] = {}
        self._board = board
        self._most = most
        self._knows = 0

    def read(self) -> bool:
        """Apply one page; gives whether there is more."""
        page = self._board.since(self._knows, everything, self._most)
        assert {*map(name_of, page.sessions), *map(name_of, page.alerts)}.isdisjoint(page.gone)
        self.sessions |= {name_of(row): row.risk for row in page.sessions}
        self.alerts |= {row.alert_id: name_of(row) for row in page.alerts}
        for name in page.gone:
            self.sessions.pop(name, None)
            self.alerts = {alert_id: of for alert_id, of in self.alerts.items() if of != name}
        self._knows = page.upto
        return page.more


def do(board: LiveBoard, deed: str, name: str, at: int) -> None:
    """One thing that happens to a board."""
    match deed:
        case "profile":
            board.take_profile(profile(name, scores=[at / 1_000], first=at), at)
        case "alert":
            board.take_alert(alert(name, f"alert-{name}"), at)
        case "erase":
            board.erase_session(SessionName("a", name), at)
        case "prune":
            board.prune(at - 50)


@given(
    commands=st.lists(
        st.tuples(st.sampled_from(["profile", "alert", "erase", "prune"]), st.integers(0, 5), st.booleans()),
        max_size=40,
    ),
    most=st.integers(1, 7),
)
def test_a_reader_of_pages_ends_with_what_the_board_has(commands: list[tuple[str, int, bool]], most: int) -> None:
    """However it is cut, and whenever it is read, applying pages in any order within each gives the same."""
    board = LiveBoard(max_sessions=100)
    reader = Reader(board, most)
    for number, (deed, which, reads) in enumerate(commands, 1):
        do(board, deed, f"s{which}", 10 * number)
        if reads:
            reader.read()
    while reader.read():
        pass

    assert reader.sessions == {each: row.risk for each in board._sessions if (row := board.row(each)) is not None}
    assert reader.alerts == board._alerts


def test_the_longest_silent_go_first_and_those_that_fire_last() -> None:
    """The bound holds whatever comes; who goes is told."""
    board = LiveBoard(max_sessions=100)
    board.take_profile(profile("firing"), 0)
    board.take_alert(alert("firing"), 0)
    for n in range(1, 301):
        board.take_profile(profile(f"s{n}"), n)
    kept = [int(each.session_id[1:]) for each in board._sessions if each.session_id != "firing"]

    assert len(board) <= 100
    assert board.row(SessionName("a", "firing")) is not None
    assert min(kept) > 200
    assert set(board.since(0, everything, MOST).gone).isdisjoint(board._sessions)
    assert len(board._gone) <= 100


def test_an_erased_session_does_not_come_back_with_older_records() -> None:
    """Topics are read independently: its alerts perhaps later, and those of a new life perhaps before the erasure."""
    board = LiveBoard()
    board.take_profile(profile(), 1_000)
    board.take_alert(alert(alert_id="old"), 1_100)
    board.take_alert(alert(alert_id="new"), 3_000)
    board.erase_session(S, 2_000)
    erased = board.row(S), board.alert("old"), [each.event.alert_id for each in board.alerts(S)]
    board.take_alert(alert(alert_id="old"), 1_100)
    board.take_profile(profile(), 2_000)
    board.take_segment(segment(), 1_000)
    late = board.row(S), board.alert("old"), board.segments(S)
    board.take_profile(profile(), 3_000)

    assert erased == (None, None, ["new"])
    assert late == (None, None, [])
    assert board.row(S) is not None


@pytest.mark.parametrize(
    ("scope", "named", "left"),
    [
        ("user", {"app_id": "a", "user_id": "u"}, {"a-v", "b-u", "b-v"}),
        ("user", {"user_id": "u"}, {"a-v", "b-v"}),
        ("app", {"app_id": "a"}, {"b-u", "b-v"}),
        ("session", {"session_id": "a-u"}, {"a-v", "b-u", "b-v"}),
    ],
)
def test_whom_an_erasure_names_vanishes_at_once(scope: EraseScope, named: dict[str, Any], left: set[str]) -> None:
    """A user of one app or of all, an app, a session; not others, and nothing that came later."""
    board = LiveBoard()
    for app in ("a", "b"):
        for user in ("u", "v"):
            board.take_profile(profile(f"{app}-{user}", app=app, user=user), 1_000)
    board.take_profile(profile("later"), 9_000)
    board.erase(EraseRequested(request_id="r", timestamp=AT, scope=scope, **named), 5_000)

    assert left | {"later"} == {each.session_id for each in board._sessions}
