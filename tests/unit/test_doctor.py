"""`turntide doctor`: nothing secret is printed, checks run side by side, and what rests on another is told once."""

import json
import re
from pathlib import Path
from threading import Event
from time import process_time
from unittest.mock import MagicMock

import pytest
import typer
from typer.testing import CliRunner

from jobs.operate.doctor import CHECKS, doctor, setting_rows
from jobs.operate.doctor.verdict import Check, Status, Verdict, verdicts
from models.errors import ConfigurationError
from models.metrics import METRICS
from streams.settings import Settings, load_settings

_app = typer.Typer()
_app.command()(doctor)


_UNSEEN = re.compile(r"hazard|§|design|\bsources?\b formula|sources'|\(\w+ memory[,:)]|\bstage \d|\bseed")
"""Documents that stand in no release: what only these explain is not explained."""


def test_every_setting_is_described() -> None:
    """Each row has a name and a description; these and metrics' need no document that users do not have."""
    rows = list(setting_rows(load_settings()))
    said = {row["setting"]: row["description"] for row in rows}
    said |= {metric.name: f"{metric.help} {metric.what_to_do}" for metric in METRICS}

    assert [row["setting"] for row in rows if not row["description"]] == []
    assert {"kafka.bootstrap", "topic_prefix", "archive.flush_rows"} <= {row["setting"] for row in rows}
    assert {name: text for name, text in said.items() if _UNSEEN.search(str(text))} == {}


def test_wrong_settings_are_a_failed_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever mistypes a setting still gets the list of all of them, and exit code 1."""
    monkeypatch.setenv("TURNTIDE_HTTP__SESSIONS_PORT", "many")
    result = CliRunner().invoke(_app, ["--output", "json"])
    report = json.loads(result.stdout)

    assert (result.exit_code, report["ok"], [c["check"] for c in report["checks"]]) == (1, False, ["settings"])
    assert "http.sessions_port" in report["checks"][0]["detail"]
    assert report["settings"]


def test_runbooks_are_there() -> None:
    """Each check that names one names a page, and none names a check that there is not."""
    folder = Path(__file__).parents[2] / "deploy" / "runbooks"

    named = {check.runbook for check in CHECKS.values() if check.runbook}

    assert [name for name in named if not (folder / f"{name}.md").is_file()] == []
    assert {check.rests_on for check in CHECKS.values() if check.rests_on} <= {*CHECKS}


def test_a_check_that_hangs_does_not_hang_the_others() -> None:
    """It has failed when its time is over, and what rests on it is not blamed too."""
    never = Event()

    def hangs(_settings: Settings) -> Verdict:
        never.wait(60)
        return Verdict(Status.OK, "")

    def refuses(_settings: Settings) -> Verdict:
        raise ConfigurationError("for want of the other")

    def breaks(_settings: Settings) -> Verdict:
        raise RuntimeError("hunter2")

    checks = {
        "topics": Check(refuses, rests_on="broker"),
        "broker": Check(hangs),
        "odd": Check(breaks),
        "fine": Check(lambda _: Verdict(Status.OK, "well")),
    }
    told: list[tuple[int, int]] = []
    found = verdicts(checks, load_settings(), within_s=0.2, done=lambda n, of: told.append((n, of)))
    never.set()

    assert [*found] == [*checks]
    assert [verdict.status for verdict in found.values()] == [Status.WARN, Status.FAIL, Status.FAIL, Status.OK]
    assert "no answer within 0.2 s" in found["broker"].detail
    assert "hunter2" not in str(found)
    assert told[-1] == (4, 4)


def test_a_check_that_works_is_waited_for_beyond_its_time() -> None:
    """A slow machine needs longer for the same work; time in which nothing is done is what counts."""

    def works(_settings: Settings) -> Verdict:
        until_s = process_time() + 1.7
        while process_time() < until_s:
            pass
        return Verdict(Status.OK, "slow, but done")

    found = verdicts({"embedder": Check(works)}, load_settings(), within_s=1.5)

    assert found["embedder"] == Verdict(Status.OK, "slow, but done")


@pytest.mark.parametrize(
    ("name", "meant"), [("brokr", "Did you mean broker?"), ("zzz", "The checks are settings, broker")]
)
def test_an_unknown_check_is_named(name: str, meant: str) -> None:
    """With the nearest one, and all of them."""
    result = CliRunner().invoke(_app, ["--check", name])

    assert isinstance(result.exception, ConfigurationError)
    assert meant in str(result.exception)


def test_what_rests_on_something_that_fails_is_told_once() -> None:
    """A failure of its own counts where the other one is well; a warning stays what it is."""
    fails, warns, well = Verdict(Status.FAIL, "f"), Verdict(Status.WARN, "w"), Verdict(Status.OK, "o")
    statuses = {}
    for name, (broker, topics) in {
        "both": (fails, fails),
        "the one": (well, fails),
        "warned": (warns, fails),
        "fine": (fails, warns),
    }.items():
        checks = {
            "broker": Check(MagicMock(return_value=broker)),
            "topics": Check(MagicMock(return_value=topics), rests_on="broker"),
        }
        found = verdicts(checks, load_settings(), within_s=60)
        statuses[name] = found["topics"].status, found["topics"].detail

    assert statuses == {
        "both": (Status.WARN, "not checked: broker fails"),
        "the one": (Status.FAIL, "f"),
        "warned": (Status.FAIL, "f"),
        "fine": (Status.WARN, "w"),
    }
