"""`turntide alerts backtest` over an archive and over labelled dialogues, and its page."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from jobs.escalation.backtest.contenders import Contender
from jobs.escalation.backtest.judging import JudgedSession
from jobs.escalation.backtest.page import render
from jobs.escalation.backtest.report import Backtest, backtest_of
from models.policy import Policy
from streams.archive.catalog import paths_of
from streams.archive.writer import LakeWriter
from streams.settings import load_settings
from tests.support.backtest_sessions import CALM, LOUD, conversation, judged, label, labelled_file
from tests.support.command_line import printed, refused, turntide
from tests.support.data_files import data_file
from tests.support.golden_text import assert_text
from tests.support.lake_records import NOW, PREFIX, buffer_of
from tests.support.report_parts import Outline

EVENTS = [
    *conversation("calm", CALM, day=-2),
    label("calm", escalating=False, day=-2),
    *conversation("loud", LOUD, app_id="shop", day=-1),
    label("loud", escalating=True, day=-1),
    *conversation("unknown", LOUD),
]
SAID = ["Good morning.", "Which ferry goes to the island?", "Thank you."]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory with no archive."""
    monkeypatch.setenv("TURNTIDE_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TURNTIDE_TOPIC_PREFIX", PREFIX)
    return tmp_path


@pytest.fixture
def writer(folder: Path) -> Iterator[LakeWriter]:
    """An archive without a record."""
    assert folder.is_dir()
    made = LakeWriter(paths_of(load_settings()))
    yield made
    made.close()


@pytest.fixture
def archive(writer: LakeWriter, folder: Path) -> Path:
    """A calm session, one that escalates, and one of which nobody said what it was."""
    writer.land(buffer_of(EVENTS), now=NOW)
    return folder


@pytest.mark.usefixtures("archive")
def test_the_archive_is_judged_by_the_labels_of_its_control_events() -> None:
    """One of two alerts is known to be right; event time says how many come a day."""
    (outcome,) = printed("backtest")["outcomes"]

    overall = outcome["overall"]
    assert (overall["sessions"], overall["labelled"], overall["alerts"]) == (3, 2, 2)
    assert (overall["precision"], overall["recall"], overall["false_alarm_ratio"]) == (1.0, 1.0, 0.0)
    assert overall["alerts_per_day"] == pytest.approx(1.0, abs=0.01)
    assert [(first["session_id"], first["turn"]) for first in outcome["first_alerts"]] == [("loud", 1), ("unknown", 1)]
    assert sorted(outcome["by_app"]) == ["shop", "support"]


@pytest.mark.usefixtures("archive")
def test_time_and_app_choose_sessions() -> None:
    """What is left out counts nowhere."""
    day_before = NOW.replace(day=NOW.day - 1).strftime("%Y-%m-%d")

    assert printed("backtest", "--until", day_before)["outcomes"][0]["overall"]["sessions"] == 1
    assert printed("backtest", "--since", day_before)["outcomes"][0]["overall"]["sessions"] == 2
    assert printed("backtest", "--since", day_before, "--app", "shop")["outcomes"][0]["overall"]["alerted"] == 1
    assert refused("backtest", "--app", "nobody's")


@pytest.mark.usefixtures("archive")
def test_two_policies_side_by_side_with_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that wants no single turn loses both alerts; table, page and CSV say so."""
    monkeypatch.setenv("COLUMNS", "160")
    deaf, page = tmp_path / "deaf.toml", tmp_path / "backtest.html"
    deaf.write_text(
        'version = "deaf-1"\n[alerts]\nsingle_turn_risk = 1.0\nmin_scored_turns = 100\nmin_evidence_turns = 1000\n'
    )
    (present := tmp_path / "present.toml").write_text('version = "loud-1"\n')
    both = ("--policy", str(present), "--policy", str(deaf))

    table = turntide("backtest", *both, "--page", str(page))
    listed = turntide("backtest", *both, "--output", "csv")

    assert table.exit_code == 0, table.exception
    assert_text("backtest", f"{table.stdout}{table.stderr}{listed.stdout}", volatile={re.escape(str(page)): "PAGE"})
    assert "no alert" in page.read_text("utf-8")


def test_dialogues_of_a_file_are_judged_by_their_sources(folder: Path) -> None:
    """Without times there is no rate by day, and none is made up; no text of a turn is printed."""
    dialogues = [(f"s-{n}", "ferries" if n % 2 else "trains", "benign", SAID) for n in range(4)]
    data = labelled_file(folder / "d.jsonl", dialogues)

    result = turntide("backtest", "--data", str(data), "--output", "json")

    found = json.loads(result.stdout)
    assert found["span_days"] is found["begins"] is found["outcomes"][0]["overall"]["alerts_per_day"] is None
    assert {app: each["benign"] for app, each in found["outcomes"][0]["by_app"].items()} == {"ferries": 2, "trains": 2}
    assert "island" not in result.output


@pytest.mark.usefixtures("writer")
def test_an_empty_archive_is_said() -> None:
    """With what to do."""
    assert "has no turns yet" in refused("backtest")


@pytest.mark.parametrize(("options", "said"), data_file("backtest_command")["refused"])
@pytest.mark.usefixtures("folder")
def test_options_that_do_not_fit_are_refused(options: list[str], said: str) -> None:
    """Each with what is wrong."""
    assert said in refused("backtest", *options)


ONE, OTHER = Policy(), structs.replace(Policy(), version="stricter-2")
NASTY = '<script>"&'


def sessions(policy_alerts: dict[str, int], *, labelled: bool = True) -> list[JudgedSession]:
    """Six sessions of two sources, with the turn of the alert of those that have one."""
    kinds = {"e1": True, "e2": True, "e3": True, "b1": False, "b2": False, NASTY: False}
    return [
        judged(
            name,
            0.1 * (n + 1),
            escalating=kind if labelled else None,
            alert_at=policy_alerts.get(name),
            app_id="shop" if n % 2 else "news",
        )
        for n, (name, kind) in enumerate(kinds.items())
    ]


def report(*, labelled: bool = True) -> Backtest:
    """Two policies, of which the second finds one more and is wrong once."""
    before = sessions({"e1": 10}, labelled=labelled)
    after = sessions({"e1": 1, "e2": 5, NASTY: 3}, labelled=labelled)
    return backtest_of("test", [Contender(ONE), Contender(OTHER)], [before, after], timed=True, dead_letters=0)


@pytest.mark.parametrize("labelled", [True, False])
def test_the_page_is_whole_and_loads_nothing(labelled: bool) -> None:
    """Every element is closed in its order, names are escaped, and no address of any kind is in it."""
    page = render(report(labelled=labelled))
    outline = Outline(page)

    assert outline.addresses() == []
    assert outline.open == []
    assert [tag for tag, _ in outline.tags].count("svg") == (4 if labelled else 0)
    assert not re.search(r"https?:|url\((?!#)|@import", page)
    assert NASTY not in page
