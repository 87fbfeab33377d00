"""Pictures, tables, the card and the PDF of a report."""

from __future__ import annotations

import re
from pathlib import Path

import altair as alt
import polars as pl

from jobs.analyse.mining.job import Picture
from jobs.analyse.report.card import card_svg
from jobs.analyse.report.document import write_document
from jobs.analyse.report.page import write_page, write_pictures
from jobs.analyse.report.page_parts import ROWS_SHOWN, table_html
from jobs.analyse.report.pictures import drawn, for_page, script
from jobs.analyse.report.theme import variables
from tests.report_parts import figure, finding, part, report, result

PNG = b"\x89PNG"
CHART = alt.Chart(pl.DataFrame({"x": [1, 2], "of": ["a", "b"]})).mark_bar().encode(x="x:Q")


def test_page_pictures_take_the_colours_of_the_page() -> None:
    """Colours of the page's pictures are variables that its style sheet has for both grounds, but for ramps."""
    config = for_page(drawn(Picture("One", "", CHART)))["config"]
    named = set(re.findall(r"var\(--([a-z]+)\)", str(config)))

    assert {"ink", "faint", "line", "grid", "a", "h"} <= named
    for background in ("light", "dark"):
        assert named <= set(re.findall(r"--([a-z]+):", variables(background)))


def test_only_a_single_view_fills_its_place() -> None:
    """Vega-Lite knows no width of the container for facets."""
    single = drawn(Picture("One", "", CHART))
    facet = drawn(Picture("Two", "", CHART.facet("of:N")))

    assert "container" == for_page(single)["width"]
    assert "width" not in for_page(facet)


def test_script_can_stand_in_a_page() -> None:
    """Nothing in it would end or open a script, and it makes what the page calls."""
    said = script()

    assert [] == re.findall(r"</script|<!--", said)
    assert "vegaEmbed" in said


def test_tables_show_units_escape_and_are_cut() -> None:
    """Percent, a dash for what is missing, names as text; what is more than shown is in the Parquet file."""
    frame = pl.DataFrame({"app_id": ["<b>x</b>"], "risen_ratio": [0.125], "json_mb": [None]})

    html = table_html("t", frame.cast({"json_mb": pl.Float64}))

    assert "&lt;b&gt;x&lt;/b&gt;" in html
    assert "12.5%" in html
    assert ">json, MB<" in html
    assert ">–<" in html
    assert "<style" not in html

    html = table_html("t", pl.DataFrame({"n": range(ROWS_SHOWN + 5)}))

    assert ROWS_SHOWN == html.count("<tr>")


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
