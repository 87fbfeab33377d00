"""Pictures, tables, the card and the PDF of a report."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import altair as alt
import polars as pl

from jobs.analyse.report.files import card_svg, write_document, write_pictures
from jobs.analyse.report.page import ROWS_SHOWN, number_columns, table_cells, write_page
from jobs.shared.pictures import drawn, script
from streams.http.pages import palettes
from tests.support.report_parts import figure, finding, part, report, result

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
