"""The page's section about escalation shows the figures of a back-test, and holds those of the last contender."""

from pathlib import Path

import msgspec
import pytest

from jobs.escalation.backtest.contenders import Contender
from jobs.escalation.backtest.report import backtest_of, without_sessions
from jobs.lab.bench.layout import Measured
from jobs.lab.bench.result import PAGE, write_page
from models.policy import Policy
from tests.support.backtest_sessions import judged
from tests.support.golden_text import assert_text

BEFORE = [
    judged("e1", 0.3, escalating=True, app_id="attack"),
    judged("e2", 0.8, escalating=True, app_id="attack", alert_at=10),
    judged("b1", 0.5, escalating=False, app_id="calm", alert_at=2),
    judged("b2", 0.1, escalating=False, app_id="calm"),
]
AFTER = [
    judged("e1", 0.7, escalating=True, app_id="attack", alert_at=4),
    judged("e2", 0.9, escalating=True, app_id="attack", alert_at=6),
    judged("b1", 0.2, escalating=False, app_id="calm"),
    judged("b2", 0.1, escalating=False, app_id="calm"),
]


@pytest.fixture
def measured() -> Measured:
    """As the command prints it."""
    contenders = [Contender(Policy(version="old")), Contender(Policy(version="new"))]
    report = backtest_of("test", contenders, [BEFORE, AFTER], timed=False, dead_letters=0)
    printed: Measured = msgspec.json.decode(msgspec.json.encode(without_sessions(report)))
    return printed


def test_both_are_shown_and_the_last_contender_is_held_to_the_goals(measured: Measured, tmp_path: Path) -> None:
    """With intervals; by source they stand on the back-test's own page."""
    (tmp_path / "escalation.json").write_bytes(msgspec.json.encode(measured))
    write_page(tmp_path)

    assert_text("bench-page-escalation", (tmp_path / PAGE).read_text("utf-8"))
