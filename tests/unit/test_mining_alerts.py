"""How good alerts were: precision by kind and app, time until somebody looked, and what was missed."""

from contextlib import closing
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest
from msgspec.structs import replace

from jobs.analyse.mining.alerts import JOB
from jobs.analyse.mining.anonymity import shown_rows
from jobs.analyse.mining.job import Period
from jobs.analyse.mining.statistics import precision_by
from models import events
from models.events.topics import ALERTS
from models.policy.archive import AnonymityPolicy, ArchivePolicy
from streams.archive.writer import LakeWriter
from tests.support.lake_records import RECEIVED, alert, buffer_of, paths, turn
from tests.support.mined_archive import mined

EVERYBODY = ArchivePolicy(anonymity=AnonymityPolicy(min_sessions=1, min_users=1))
DAY = RECEIVED.date()


def labels(*rows: tuple[str, bool | None], users: int = 99) -> pl.DataFrame:
    """Labelled alerts by kind, each of a session of its own."""
    return pl.DataFrame(
        [
            {"session_id": f"s-{n}", "user_id": f"u-{n % users}", "category": kind, "escalating": right}
            for n, (kind, right) in enumerate(rows)
        ]
    )


def test_precision_has_its_interval_and_hides_what_is_about_few() -> None:
    """Four of eight are right; where two are wrong, or all are of few users, no share is told."""
    even = [("fraud", n < 4) for n in range(8)]
    policy = AnonymityPolicy(min_sessions=4, min_users=4)

    told = shown_rows(precision_by(labels(*even), "category"), policy).kept
    of_few_users = shown_rows(precision_by(labels(*even, users=3), "category"), policy).kept
    two_wrong = shown_rows(precision_by(labels(*[("hate", n > 1) for n in range(9)]), "category"), policy).kept

    assert [("fraud", 8, 0.5)] == told.select("category", "labels", "right_ratio").rows()
    assert (pytest.approx(0.215, abs=1e-3), pytest.approx(0.785, abs=1e-3)) == (
        told["from_ratio"].item(),
        told["to_ratio"].item(),
    )
    assert [] == of_few_users.rows()
    assert [("hate", 9, None, None, None)] == two_wrong.drop("sessions", "users").rows()


def test_a_right_a_false_and_a_missed_one_are_told_of_the_archive(tmp_path: Path) -> None:
    """By the broker's times, the latest label of each, and not a session that is labelled calm or has an alert."""
    raised = [
        replace(alert(f"e-{n}", events.AlertStatus.FIRING), session_id=f"s-{n}", user_id=f"u-{n}", alert_id=f"a-{n}")
        for n in range(2)
    ]
    raised = [replace(each, category=events.Harm.FRAUD) for each in raised]

    def label(session: str, alert_id: str, *, escalating: bool) -> events.AlertLabelled:
        named = {"session_id": session, "app_id": "support", "timestamp": RECEIVED}
        return events.AlertLabelled(**named, alert_id=alert_id, escalating=escalating)  # type: ignore[arg-type]

    said = [
        *(turn(session_id=f"s-{n}") for n in range(5)),
        label("s-0", "a-0", escalating=False),
        label("s-0", "a-0", escalating=True),
        label("s-1", "a-1", escalating=False),
        label("s-1", "", escalating=True),
        label("s-2", "", escalating=True),
        label("s-3", "", escalating=True),
        label("s-3", "", escalating=False),
    ]
    with closing(LakeWriter(paths(tmp_path / "archive"))) as writer:
        writer.land(buffer_of(said), now=RECEIVED)
        writer.land(buffer_of(raised, topic=ALERTS), now=RECEIVED)
        for n, minutes in enumerate((7, 9)):
            seen = replace(raised[n], id=f"seen {n}", status=events.AlertStatus.ACKNOWLEDGED, cause="acknowledged")
            later = RECEIVED + timedelta(minutes=minutes)
            writer.land(buffer_of([seen], topic=ALERTS, first=2 + n, expected=2 + n, received=later), now=later)

    made = mined(JOB, paths(tmp_path / "archive"), tmp_path / "mined", period=Period(DAY, DAY), policy=EVERYBODY)

    assert {
        "labelled_alerts_ratio": 1.0,
        "acknowledged_alerts_ratio": 1.0,
        "minutes_to_acknowledge_median": 8.0,
        "minutes_to_acknowledge_p90": None,
        "missed_sessions": 1.0,
        "found_of_known_ratio": 0.5,
    } == {figure.name: figure.value for figure in made.section.figures}
    assert [("fraud", 2, 0.5)] == made.tables["kinds"].select("category", "labels", "right_ratio").rows()
    assert [("support", 1, 1)] == made.tables["missed"].rows()
    assert [("support", 2, 2, 2, 8.0, None)] == made.tables["answers"].rows()
