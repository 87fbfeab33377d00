"""The report as one HTML file: it loads nothing, and suits light and dark, wide and narrow screens, and paper.

The report as files beside its page: a card and each chart as PNG for chat, and a PDF on A4.

The PDF has headline, findings and charts; tables stay on the page.
"""

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import vl_convert
from pypdf import PdfWriter

from jobs.analyse.report import wording
from jobs.analyse.report.gathering import NAMES_ALERTS, MiningReport
from jobs.shared.pictures import Drawn, script, write_whole
from models.language.notable import clipped
from streams.http import pages

_CARD_SCALE = 1.5
_A4_PT = (595, 842)
_MARGIN_PT, _LINE_PT, _LINE_CHARS = 48, 15, 92
_PER_PAGE, _PICTURE_PT = 3, (500, 198)
_SIZE = re.compile(r'(?<=<svg )(.*?)width="[\d.]+" height="[\d.]+"')


def write_pictures(report: MiningReport, folder: Path) -> list[Path]:
    """Write the card and each chart into a folder, which is made if there is none.

    Raises:
        OSError: The folder cannot be written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {"summary.png": vl_convert.svg_to_png(card_svg(report), scale=_CARD_SCALE)}
    for part in report.parts:
        for number, picture in enumerate(part.pictures, 1):
            files[file_name(part.name, number, picture.title)] = picture.png()
    for name, content in files.items():
        write_whole(folder / name, content)
    return [folder / name for name in files]


def file_name(job: str, number: int, title: str) -> str:
    """Name of a picture's file.

    >>> file_name("overview", 1, "How far sessions went")
    'overview-1-how-far-sessions-went.png'
    """
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    return f"{job}-{number}-{words}.png"


def write_document(report: MiningReport, place: Path) -> None:
    """Write the PDF.

    Raises:
        OSError: The place cannot be written to.
    """
    written, content = PdfWriter(), BytesIO()
    for sheet in (*_text_sheets(report), *_picture_sheets(report)):
        written.append(BytesIO(vl_convert.svg_to_pdf(sheet.svg())))
    written.add_metadata({"/Title": f"Turntide report, {wording.days(report.period)}", "/Creator": "turntide"})
    written.write(content)
    write_whole(place, content.getvalue())


class _Sheet:
    """A page of A4: texts and charts at their places; `y` is where the next line goes."""

    def __init__(self) -> None:
        self.width, self.height = _A4_PT
        self.y = float(_MARGIN_PT)
        self._texts: list[dict[str, object]] = []
        self._pictures: list[str] = []

    def text(self, x: float, y: float, said: str, size: float, **look: str) -> None:
        """Write a line; `look` names its colour, weight and anchor."""
        self._texts.append({"x": x, "y": y, "said": said, "size": size} | look)

    def lines(self, said: str, size: float = 10, *, chars: int = _LINE_CHARS, **look: str) -> None:
        """Write below what is there, in as many lines as it takes."""
        for line in textwrap.wrap(said, chars):
            self.y += _LINE_PT * size / 10
            self.text(_MARGIN_PT, self.y, line, size, **look)

    def picture(self, drawn: Drawn, y: float) -> None:
        width, height = _PICTURE_PT
        place = rf'\1x="{_MARGIN_PT}" y="{y}" width="{width}" height="{height}" preserveAspectRatio="xMinYMin"'
        self._pictures.append(_SIZE.sub(place, drawn.svg(), count=1))

    def svg(self) -> str:
        return pages.render(
            "jobs/analyse/report/sheet.svg.j2",
            width=self.width,
            height=self.height,
            colours=pages.palettes()["light"],
            texts=self._texts,
            pictures=self._pictures,
        )


def card_svg(report: MiningReport) -> str:
    """The report as one picture for chat: headline numbers with their change, and the strongest findings."""
    return pages.render(
        "jobs/analyse/report/card.svg.j2",
        report=report,
        wording=wording,
        clipped=clipped,
        colours=pages.palettes()["light"],
        period=_period(report),
        nothing=report.nothing,
    )


def _text_sheets(report: MiningReport) -> Iterator[_Sheet]:
    sheet = _Sheet()
    sheet.lines("Turntide report", 20, weight="bold")
    sheet.lines(f"{_period(report)} (UTC)", colour="faint")
    sheet.y += _LINE_PT
    sheet.lines(report.in_words)
    for part in report.failed:
        sheet.lines(f"{part.title} could not be made as a whole: {part.failure}.", colour="bad")
    for figure in report.headline:
        change = report.change(figure)
        sheet.y += 1.3 * _LINE_PT
        sheet.text(_MARGIN_PT, sheet.y, wording.label(figure.name), 11, colour="faint")
        sheet.text(_MARGIN_PT + 210, sheet.y, wording.shown(figure), 11)
        beside = wording.takes(report.anonymity) if figure.hidden else change.text
        sheet.text(_MARGIN_PT + 320, sheet.y, beside, 11, colour=change.tone)
    sheet.y += _LINE_PT
    sheet.lines("Findings", 14, weight="bold")
    if not report.findings:
        sheet.lines(report.no_finding, colour="faint")
    for part, shown in report.findings:
        said = f"{shown.finding.text} {wording.evidence(shown)}."
        if sheet.y + (len(textwrap.wrap(said, _LINE_CHARS)) + 4) * _LINE_PT > sheet.height - _MARGIN_PT:
            yield sheet
            sheet = _Sheet()
        sheet.y += _LINE_PT / 2
        sheet.lines(shown.finding.title, 11, weight="bold", chars=_LINE_CHARS - 12)
        sheet.lines(said)
        sheet.lines(part.title, 8, colour="faint")
    yield sheet


def _picture_sheets(report: MiningReport) -> Iterator[_Sheet]:
    pictures = [(part.title, picture) for part in report.parts for picture in part.pictures]
    for first in range(0, len(pictures), _PER_PAGE):
        sheet = _Sheet()
        for row, (section, picture) in enumerate(pictures[first : first + _PER_PAGE]):
            sheet.y = top = _MARGIN_PT + row * (sheet.height - 2 * _MARGIN_PT) / _PER_PAGE
            sheet.text(sheet.width - _MARGIN_PT, top + _LINE_PT, section, 9, colour="faint", anchor="end")
            sheet.lines(picture.title, 12, weight="bold", chars=_LINE_CHARS - 30)
            sheet.picture(picture, sheet.y + 6)
            sheet.y += _PICTURE_PT[1] + 6
            sheet.lines(picture.caption, 8.5, colour="faint", chars=_LINE_CHARS + 12)
        yield sheet


def _period(report: MiningReport) -> str:
    return f"{wording.days(report.period)}, held against {wording.days(report.period.earlier)}"


ROWS_SHOWN = 30
_ROWS_OPEN = 12
"""A longer table is folded: its picture says more."""
_PICTURES_AT_THE_TOP = 2
"""Of the overview, at the top of the page."""

_WRITTEN: Mapping[type, Callable[[Any], str]] = {
    bool: lambda value: "yes" if value else "no",
    int: "{:,}".format,
    datetime: "{:%Y-%m-%d %H:%M}".format,
    list: lambda value: ", ".join(map(str, value)),
    dict: lambda value: msgspec.json.encode(value, enc_hook=str).decode(),
}
"""Cells by their kind, the first that fits; all others as they are."""


def render(report: MiningReport) -> str:
    """The page."""
    return pages.render(
        "jobs/analyse/report/page.html.j2",
        scripts=(script(), pages.source("jobs/analyse/report/page.js")),
        report=report,
        wording=wording,
        spec=_spec,
        cells=table_cells,
        numbers=number_columns,
        rows_shown=ROWS_SHOWN,
        rows_open=_ROWS_OPEN,
        names_alerts=NAMES_ALERTS,
        pictures_at_the_top=_PICTURES_AT_THE_TOP,
    )


def write_page(report: MiningReport, place: Path) -> None:
    """Write the page.

    Raises:
        OSError: The place cannot be written to.
    """
    write_whole(place, render(report).encode())


def table_cells(frame: pl.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Headings and the first rows; a column's name tells its unit."""
    rows = frame.head(ROWS_SHOWN).rows()
    return [_heading(name) for name in frame.columns], [list(map(_cell, frame.columns, row)) for row in rows]


def number_columns(frame: pl.DataFrame) -> list[int]:
    """Places of the columns that hold numbers or times."""
    return [place for place, kind in enumerate(frame.dtypes) if kind.is_numeric() or kind.is_temporal()]


def _heading(column: str) -> str:
    unit = "" if wording.is_share(column) else wording.unit(column)
    return f"{wording.label(column)}, {unit}" if unit else wording.label(column)


def _cell(column: str, value: Any) -> str:
    if value is None:
        return wording.NOTHING
    if isinstance(value, float):
        return f"{value:.1%}" if wording.is_share(column) else wording.rounded(value)
    written = next((write for kind, write in _WRITTEN.items() if isinstance(value, kind)), str)
    return written(value)


def _spec(picture: Drawn) -> str:
    """A chart as JSON that can stand in a script."""
    return msgspec.json.encode(picture.for_page(), enc_hook=str).decode().replace("<", "\\u003c")
