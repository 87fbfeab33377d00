"""The report: its page, pictures, tables, card and PDF; everything escaped, nothing asked of the network."""

import json
import re
from base64 import b64encode
from datetime import datetime
from hashlib import sha256
from pathlib import Path

import altair as alt
import polars as pl
import pytest
from msgspec.structs import replace

from jobs.analyse.mining.job import Figure, JobResult
from jobs.analyse.report.page import (
    ROWS_SHOWN,
    card_svg,
    number_columns,
    render,
    table_cells,
    write_document,
    write_page,
    write_pictures,
)
from jobs.shared.pictures import drawn, script
from streams.http.pages import palettes
from tests.support.data_files import data_file
from tests.support.report_parts import WEEK, Outline, figure, finding, part, report, result

NASTY = "<img src=x onerror=alert(1)> & \"quoted\" 'too'"
SIX = "6 sessions alerted"
EXECUTED = re.compile(r"<script>(.*?)</script>", re.DOTALL)


def full() -> str:
    """A page with everything on it, and nasty names everywhere."""
    made = result(
        figures=[figure("sessions", 40.0), figure("at_risk_ratio", 0.2, better="lower")],
        findings=[finding(NASTY, 0.9, evidence=NASTY)],
        tables={"apps": pl.DataFrame({"app_id": [NASTY], "sessions": [9], "users": [9]})},
        notes=[NASTY],
    )
    earlier = result(
        period=WEEK.earlier, figures=[figure("sessions", 20.0), figure("at_risk_ratio", 0.1, better="lower")]
    )
    return render(report(part(made=made, earlier=earlier, pictures=3, question=NASTY), part("drift", failure=NASTY)))


def test_names_are_text_and_tags_are_balanced() -> None:
    """No tag comes of a name; the page is a tree, and each link of the contents leads somewhere."""
    outline = Outline(full())

    assert [] == [tag for tag, attributes in outline.tags if tag == "img" or "onerror" in attributes]
    assert 6 <= outline.said.count("onerror=alert(1)")

    links = [attributes["href"] or "" for tag, attributes in outline.tags if tag == "a"]

    assert [] == outline.open
    assert len(outline.ids()) == len(set(outline.ids()))
    assert {link.removeprefix("#") for link in links} <= set(outline.ids())


def test_page_asks_for_nothing_and_runs_its_own_scripts_alone() -> None:
    """No tag names a place elsewhere; the page allows itself two scripts, by their digests, and no connection."""
    page = full()
    outline = Outline(page)
    (policy,) = [a["content"] or "" for tag, a in outline.tags if a.get("http-equiv") == "Content-Security-Policy"]
    digests = {f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in EXECUTED.findall(page)}
    allowed = re.search(r"script-src ([^;]+);", policy)

    assert [] == outline.addresses()
    assert "default-src 'none'" in policy
    assert "connect-src" not in policy
    assert allowed is not None
    assert set(allowed[1].split()) == digests
    assert 2 == len(digests)


def test_pictures_keep_their_data_and_say_what_they_show() -> None:
    """Each picture has a spec that reads as JSON, whatever is in it, and a text for those who do not see it."""
    page = full()
    specs = dict(re.findall(r'<script type="application/json" id="([^"]+)">(.*?)</script>', page, re.DOTALL))
    places = [a for _, a in Outline(page).tags if a.get("class") == "picture"]

    assert [*specs] == [a["data-spec"] for a in places]
    assert "Picture 0 <i>. What it shows & how." == places[0]["aria-label"]
    assert all("</script><b>" in str(json.loads(spec)["datasets"]) for spec in specs.values())


def test_one_section_does_not_fill_the_top() -> None:
    """Of a section's many findings the three strongest are at the top; all are in the section."""
    many = [finding(f"campaign {n}", 1 - n / 100) for n in range(6)]
    made = report(
        part("campaigns", made=result(job="campaigns", findings=many)),
        part("drift", made=result(job="drift", findings=[finding("a shift", 0.1)])),
    )

    page = render(made)

    assert ["campaign 0", "campaign 1", "campaign 2", "a shift"] == [f.shown.finding.title for f in made.top_findings]
    assert [2, 1] == [page.count(f"<h3>campaign {n}</h3>") for n in (0, 5)]


@pytest.mark.parametrize("said", data_file("report_page")["told"])
def test_what_is_left_out_and_what_findings_rest_on_is_told(said: str) -> None:
    """Of each section; twice as many sessions as earlier, ten points more at risk, which is worse."""
    page = full()

    assert said in Outline(page).said
    assert 'class="bad">+10.0 points' in page


@pytest.mark.parametrize(
    ("before", "shop", "said"),
    [
        (
            3,
            5,
            f"{SIX}, twice as many as the 3 in the period before, all of them about fraud, most of them of app a.",
        ),
        (6, 3, f"{SIX}, as many as in the period before."),
        (None, None, f"{SIX}."),
    ],
)
def test_alerts_are_told_in_words(before: int | None, shop: int | None, said: str) -> None:
    """Held against the earlier period where there is one; an app that may not be shown is not named."""
    tables = {
        "apps": pl.DataFrame({"app_id": ["a", "b"], "alerting_sessions": [shop, None]}),
        "kinds": pl.DataFrame({"category": ["fraud"], "sessions": [6 if shop == 5 else 2]}),
    }
    made = result(figures=[figure("alerting_sessions", 6.0)], tables=tables)
    earlier = before and result(period=WEEK.earlier, figures=[figure("alerting_sessions", float(before))])

    told = report(part(made=made, earlier=earlier or None))

    assert said == told.in_words
    assert said in Outline(render(told)).said


def test_a_week_that_began_late_is_not_held_against() -> None:
    """Where the earlier period has fewer days with rows, everything would seem to have grown."""
    now = figure("sessions", 70.0)
    befores = [
        part(
            made=result(figures=[now]),
            earlier=result(period=WEEK.earlier, figures=[figure("sessions", 20.0)], days=days),
        )
        for days in (2, 7)
    ]

    assert [None, 20.0] == [each.before(now) for each in befores]


def quiet(*figures: Figure, left_out: int = 0, days: int = 7) -> str:
    """What stands where findings would, of a report without any."""
    made = result(figures=figures, days=days)
    section = replace(made.section, findings_left_out=left_out)
    return report(part(made=JobResult(section, made.tables))).nothing


def test_a_report_that_is_shy_does_not_read_as_calm() -> None:
    """Nothing stands out only where enough was there, no finding is hidden, and nobody alerted."""
    sessions, few = figure("sessions", 60), replace(figure("sessions", None), hidden=True)
    alerts = [figure("alerting_sessions", 1), figure("critical_sessions", 1)]

    assert quiet(sessions) == "Nothing stands out in this period."
    assert quiet(sessions, figure("alerting_sessions", 0)) == "Nothing stands out in this period."
    assert quiet(sessions, left_out=2) == (
        "Nothing is shown: 2 findings are about fewer than 5 sessions or 5 users: hidden."
    )
    assert quiet(few) == "The period has fewer than 5 sessions or 5 users, too few to look for patterns."
    assert quiet(sessions, *alerts) == (
        "No pattern stands out. But 1 session alerted and 1 session became critical: "
        '`turntide query "FROM alerts SELECT session_id, severity, reason"` names them.'
    )
    assert quiet(sessions, days=0) == "The archive holds nothing of this period."


def test_a_hidden_figure_says_what_it_would_take() -> None:
    """On the page, and not the dash of what there is nothing to tell of."""
    hidden = replace(figure("at_risk_ratio", None), hidden=True)
    page = Outline(render(report(part(made=result(figures=[hidden, figure("label_precision_ratio", None)])))))

    assert "at riskhidden" in page.said
    assert "takes 5 sessions and 5 users" in page.said
    assert "label precision–" in page.said


PNG = b"\x89PNG"
CHART = alt.Chart(pl.DataFrame({"x": [1, 2], "of": ["a", "b"]})).mark_bar().encode(x="x:Q")


def test_page_pictures_take_the_colours_of_the_page() -> None:
    """Colours are variables that the style sheet has for both grounds; the script that draws opens no script."""
    picture = drawn("One", "", CHART)
    named = set(re.findall(r"var\(--([a-z]+)\)", str(picture.for_page()["config"])))

    assert {"ink", "faint", "line", "grid", "a", "h"} <= named
    assert all(named <= set(palette) for palette in palettes().values())
    assert "var(--a)" in picture.inline(360)
    assert "var(" not in picture.svg()
    assert [] == re.findall(r"</script|<!--", script())
    assert "vegaEmbed" in script()
    assert "container" == picture.for_page()["width"]
    assert "width" not in drawn("Two", "", CHART.facet("of:N")).for_page()


def test_tables_show_units_and_are_cut() -> None:
    """Percent, a dash for what is missing, times to the minute; what is more than shown is in the Parquet file."""
    frame = pl.DataFrame(
        {
            "app_id": ["x"],
            "risen_ratio": [0.125],
            "json_mb": pl.Series([None], dtype=pl.Float64),
            "sessions": [1_234],
            "at": [datetime(2026, 3, 9, 8, 30, 59)],  # noqa: DTZ001 - as DuckDB has it
            "shifted": [True],
            "of": [["a", "b"]],
        }
    )

    heads, rows = table_cells(frame)

    assert ["app", "risen", "json, MB", "sessions", "at", "shifted", "of"] == heads
    assert [["x", "12.5%", "–", "1,234", "2026-03-09 08:30", "yes", "a, b"]] == rows
    assert [1, 2, 3, 4] == number_columns(frame)
    assert ROWS_SHOWN == len(table_cells(pl.DataFrame({"n": range(ROWS_SHOWN + 5)}))[1])


def test_card_has_headline_and_findings() -> None:
    """Numbers with their change, three findings, and how many more; names are escaped."""
    made = result(
        figures=[figure("sessions", 40.0), figure("users", 12.0)],
        findings=[finding(f"<finding {n}>", 1 - n / 10) for n in range(3)],
    )
    other = part("drift", made=result(job="drift", findings=[finding("shift", 0.1)]))

    svg = card_svg(report(part(made=made, earlier=result(figures=[figure("sessions", 50.0)])), other))

    for said in (">40<", ">−20\N{NO-BREAK SPACE}%<", "&lt;finding 0&gt;", "&lt;finding 2&gt;", "and 1 more finding"):
        assert said in svg


def test_files_are_written_as_wholes(tmp_path: Path) -> None:
    """The page, a card, and one picture per chart; nothing half-written stays beside them."""
    made = report(part(made=result(figures=[figure("sessions", 40.0)]), pictures=2))

    write_page(made, tmp_path / "report.html")
    places = write_pictures(made, tmp_path / "pictures")

    assert ["summary.png", "overview-1-picture-0-i.png", "overview-2-picture-1-i.png"] == [
        place.name for place in places
    ]
    assert {PNG} == {place.read_bytes()[:4] for place in places}
    assert {"report.html", "pictures"} == {path.name for path in tmp_path.iterdir()}


def test_document_has_all_findings_and_pictures(tmp_path: Path) -> None:
    """Findings that do not fit on a page go on on the next; three pictures are a page; a dollar is no formula."""
    many = [finding(f"finding {n} of $5 and $6", 0.5) for n in range(30)]
    made = report(part(made=result(figures=[figure("sessions", 40.0)], findings=many), pictures=4))

    write_document(made, tmp_path / "report.pdf")
    content = (tmp_path / "report.pdf").read_bytes()

    assert content.startswith(b"%PDF")
    assert 5 <= len(re.findall(rb"/Type /Page\b", content)) <= 6
