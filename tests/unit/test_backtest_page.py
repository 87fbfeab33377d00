"""The page of a back-test: whole without a network, and its pictures show the figures."""

from __future__ import annotations

import re

import pytest
from msgspec import structs

from jobs.escalation.backtest.contenders import Contender
from jobs.escalation.backtest.judging import JudgedSession
from jobs.escalation.backtest.page import render
from jobs.escalation.backtest.report import Backtest, backtest_of, compared_rows, notes_on, source_rows
from models.policy import Policy
from tests.support.backtest_sessions import judged
from tests.support.report_parts import Outline

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


def test_the_page_names_sessions_that_differ_and_points_stand_where_the_figures_say() -> None:
    """By id and turn. The first policy finds a third without a false alarm, the second two thirds with a third."""
    page = render(report())
    different = page[page.index("Where they differ") :]
    titles = re.findall(r"<title>([^<]*false alarms)</title>", page)

    assert "<td>e1</td><td>news</td><td>escalating</td><td>10</td><td>1</td>" in different
    assert "<td>e2</td><td>shop</td><td>escalating</td><td>no alert</td><td>5</td>" in different
    assert "e3" not in different
    assert titles == ["default-1: recall 33.3% at 0.0% false alarms", "stricter-2: recall 66.7% at 33.3% false alarms"]


def test_figures_of_an_archive_say_that_they_are_of_labelled_sessions_alone() -> None:
    """Only alerts can be labelled; of a file, whose every dialogue has a label, nothing of the kind is said."""
    archive, said = report(), ", of labelled sessions alone"
    file = structs.replace(archive, span_days=None)

    for part in ("recall", "false-alarm rate", "ROC-AUC"):
        assert f"{part}{said}" in {row[""] for row in compared_rows(archive)}
        assert part in {row[""] for row in compared_rows(file)}
    assert f"recall{said} (default-1)" in source_rows(archive)[0]
    assert f"<h3>Recall against false alarms{said}</h3>" in render(archive)
    assert any("Only alerts can be labelled" in note for note in notes_on(archive))
    assert said not in render(file)
    assert not any("Only alerts" in note for note in notes_on(file))
