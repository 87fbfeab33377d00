"""The demo's script and its player: order, pace, time, and the acknowledgement of an alert."""

import json
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace

from jobs.alerts.command import harmless_alert
from jobs.demo import stage as leftovers
from jobs.demo.conversations import CueAct, load_conversations, load_play, schedule
from jobs.demo.play import PLAY_SECONDS, DemoState, Play
from jobs.demo.questions import load_questions
from jobs.demo.run import demo_policy
from jobs.shared.sending import Sender
from models.events import AlertAcknowledged, AlertChanged, ControlEvent, SessionEnded, Severity, Turn
from streams.kafka.producer import Record
from tests.support.command_line import refused, turntide

_HUNDREDFOLD = 100.0


class Log:
    """Takes what is sent, as the broker's log would, and raises an alert when `demand` reaches turn 8."""

    def __init__(self, state: DemoState) -> None:
        self.records: list[Record] = []
        self.events: list[Turn | ControlEvent] = []
        self._state = state

    async def add(self, record: Record) -> None:
        """Keep the record and its event."""
        assert record.value
        kind: Any = Turn if msgspec.json.decode(record.value)["type"] == "turn" else ControlEvent
        self.records.append(record)
        self.events.append(msgspec.json.decode(record.value, type=kind))

    async def finish(self) -> None:
        """Answer as Turntide would."""
        event = self.events[-1]
        if isinstance(event, Turn) and (event.session_id, event.turn) == ("demand", 8):
            self._state.take(raised(event), at_s=0.0)


def raised(turn: Turn) -> AlertChanged:
    """An alert at a turn."""
    alert = replace(
        harmless_alert(turn.timestamp), session_id=turn.session_id, app_id=turn.app_id, user_id=turn.user_id
    )
    return replace(alert, alert_id="alert-1", severity=Severity.CRITICAL, cause="raised", turn=turn.turn)


@pytest.fixture
async def log() -> Log:
    """What a play at the highest speed sends."""
    state = DemoState.of(load_play())
    sent = Log(state)
    await Play(cast("Sender", sent), state, schedule(load_play()), speed=_HUNDREDFOLD).run()
    return sent


def test_sessions_interleave_and_keep_their_order() -> None:
    """The schedule is sorted by event time; within a session times strictly increase."""
    cues = schedule(load_play())
    by_session = defaultdict(list)
    for cue in cues:
        by_session[cue.conversation.session_id].append(cue)

    assert [cue.at for cue in cues] == sorted(cue.at for cue in cues)
    for own in by_session.values():
        assert all(earlier.at < later.at for earlier, later in pairwise(own))
        assert [cue.turn for cue in own if cue.act is CueAct.TURN] == list(range(len(own[0].conversation.turns)))
    assert sum(a.conversation != b.conversation for a, b in pairwise(cues)) > len(cues) / 2
    assert cues[-1].at < timedelta(minutes=30)

    # Four weeks of the project are hurried to the play's length, without a pause: all of it is within the time-out.
    project, last = by_session["tool-library"], schedule(load_conversations())[-1]
    assert abs(project[-1].at - last.at) < timedelta(seconds=1)
    assert project[0].at < timedelta(minutes=1)
    assert max(after.at - before.at for before, after in pairwise(project)) < timedelta(minutes=1)

    # Sessions are on partitions of their own: were the asked user's to overlap, the order of the turns would be luck.
    (name,) = {(question.app_id, question.user_id) for question in load_questions().users}
    times = [[cue.at for cue in own] for own in by_session.values() if own[0].conversation.user_id == name[1]]
    assert len(times) == 3
    assert all(after[0] - before[-1] > timedelta(minutes=1) for before, after in pairwise(times))


async def test_everything_is_sent_under_its_session_and_never_of_the_future(log: Log) -> None:
    """Keys are session ids, nothing is left out, the span ends now; an acknowledgement names the alert raised."""
    newest, now = max(event.timestamp for event in log.events), datetime.now(UTC)
    (acknowledged,) = [event for event in log.events if isinstance(event, AlertAcknowledged)]
    before = [e for e in log.events[: log.events.index(acknowledged)] if e.session_id == "demand"]

    assert [record.key for record in log.records] == [event.session_id.encode() for event in log.events]
    assert len(log.events) == len(schedule(load_play()))
    assert sum(isinstance(event, SessionEnded) for event in log.events) == 20
    assert now - timedelta(seconds=PLAY_SECONDS) < newest <= now
    assert acknowledged.alert_id == "alert-1"
    assert isinstance(before[-1], Turn)
    assert before[-1].turn == 11


def test_a_used_folder_is_refused(tmp_path: Path) -> None:
    """Another run's archive must not be mixed with this one's."""
    (tmp_path / "something").touch()

    assert "is not empty" in refused("demo", "--data-dir", str(tmp_path))


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of the test's own."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_what_demos_left_is_removed_and_nothing_else(temporary: Path) -> None:
    """Neither a folder of somebody else's, nor that of a demo that runs; how much went is said."""
    left, runs = leftovers.new_folder(), leftovers.new_folder()
    for folder in (left, runs):
        (folder / "policy.toml").write_bytes(demo_policy())
        (folder / "turns.parquet").write_bytes(bytes(10_000))
    other = temporary / "turntide"
    other.mkdir()
    (temporary / "turntide-demo-link").symlink_to(other)
    (other / "mine").write_text("mine")
    with leftovers.held(runs):
        told = json.loads(turntide("demo", "--clean", "--output", "json").stdout)
    rows = {row["folder"]: row["removed"] for row in told}

    assert rows == {str(left): True, str(runs): False}
    assert all(row["bytes"] >= 10_000 for row in told)
    assert (left.exists(), runs.exists(), (other / "mine").exists()) == (False, True, True)
    assert "is no folder of a demo" in refused("demo", "--clean", "--data-dir", str(other))
