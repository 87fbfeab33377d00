"""What is to be reviewed: widest disagreements and nearest scores by turns; labels come back as training lines."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from jobs.alerts.review import Doubtful, doubtful, queue
from jobs.cli import app
from jobs.shared.dialogues import read_dialogues
from models import events
from models.events.topics import ALERTS, PROFILES
from models.policy import ModePolicy
from streams.archive.writer import LakeWriter
from tests.support.lake_records import NOW, alert, buffer_of, profile, turn
from tests.support.mined_plan import PLAN


def doubt(session: str, score: float, judge: float | None = None) -> Doubtful:
    """A session whose app alerts from 0.5 on."""
    return Doubtful(
        app_id="shop", session_id=session, alert_id="", turn=1, category="", score=score, threshold=0.5, judge=judge
    )


def test_disagreement_and_doubt_are_asked_of_by_turns() -> None:
    """The widest and the nearest first, equal ones by their names, what is left over at the end; in any order given."""
    found = [
        doubt("b", 0.45),
        doubt("agreed", 0.9, judge=0.88),
        doubt("a", 0.55),
        doubt("apart", 0.6, judge=0.1),
        doubt("calm", 0.02),
    ]

    ordered = queue(found)

    assert ["apart", "a", "agreed", "b", "calm"] == [each.session_id for each in ordered]
    assert ordered == queue(found[::-1])
    assert ["0.50 apart: alert 0.60, judge 0.10", "0.05 above the threshold"] == [each.why for each in ordered[:2]]


def test_a_judges_answer_stands_beside_the_alert_as_raised(writer: LakeWriter) -> None:
    """The latest answer, and the score before it changed it; a session that has any label is not asked of again."""
    sessions = [f"s-{n}" for n in range(1, 4)]
    raised = replace(alert("e-1", events.AlertStatus.FIRING), score=0.6)
    judged = events.TurnsJudged(session_id="s-1", timestamp=NOW, alert_id="a-1", judge="guard", probability=0.9)
    said = [
        *(turn(session_id=session) for session in sessions),
        judged,
        replace(judged, probability=0.1),
        replace(judged, probability=None, failure="timeout"),
        events.AlertLabelled(session_id="s-3", app_id="support", timestamp=NOW, alert_id="", escalating=False),
    ]
    points = [events.RiskPoint(0, NOW, 0.2, 0.3, events.Mode.WATCH, "rules")]
    profiles = [
        replace(profile(f"p-{session}", turns=1, session_id=session), risk_points=points) for session in sessions
    ]
    writer.land(buffer_of(said), now=NOW)
    writer.land(buffer_of([raised, replace(raised, id="e-2", score=0.2, cause="judged")], topic=ALERTS), now=NOW)
    writer.land(buffer_of(profiles, topic=PROFILES), now=NOW)
    modes = ModePolicy()

    found = doubtful(writer.con, modes, apps=["support"], since=NOW)

    assert [("s-1", "a-1", 0.6, 0.1), ("s-2", "", 0.3, None)] == [
        (each.session_id, each.alert_id, each.score, each.judge) for each in found
    ]
    assert {modes.thresholds("support")[1].enter} == {each.threshold for each in found}
    assert [] == doubtful(writer.con, modes, apps=["shop"], since=NOW)


def test_labels_come_back_as_lines_that_training_reads(
    planted_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each labelled session with its turns and its label; the queue has all others and nothing that was said."""
    monkeypatch.setenv("TURNTIDE_DATA_DIR", str(planted_home))
    file = tmp_path / "mine.jsonl"

    exported = CliRunner().invoke(app, ["review", "--export", str(file), "--output", "json"])
    listed = CliRunner().invoke(app, ["alerts", "review", "--limit", "500", "--output", "json"])
    lines, rows = read_dialogues(file), json.loads(listed.stdout)

    planted = {f"{each.app_id}/{each.session_id}": each for each in PLAN}
    # Of even days: those that rise; high ones that fall, and two days of the campaign.
    assert {"file": str(file), "escalating": 7 + 7 + 3, "benign": 7 + 2 * 4} == json.loads(exported.stdout)
    assert all(line.escalating == planted[line.session_id].rises for line in lines)
    assert {f"{planted[line.session_id].app_id}_{'attack' if line.escalating else 'benign'}" for line in lines} == {
        line.source for line in lines
    }
    assert {*planted} - {line.session_id for line in lines} == {f"{row['app_id']}/{row['session_id']}" for row in rows}
    assert lines[0].said_by_user[0] not in listed.stdout
