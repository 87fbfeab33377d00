"""The report as a PDF: headline, findings and charts, on A4, by matplotlib; charts are drawn without a browser.

Tables stay on the page: who reads a PDF in chat wants the pictures.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from matplotlib.image import imread

from jobs.analyse.report import wording
from jobs.analyse.report.gathering import MiningReport, TopFinding
from jobs.analyse.report.page_parts import evidence, headline_figures
from jobs.analyse.report.pictures import Drawn, png_of
from jobs.analyse.report.theme import by_value

_A4_IN = (8.27, 11.69)
_MARGIN = 0.08
"""Of the width, on both sides; places on a page are shares of it, from its lower left."""
_TOP, _BOTTOM = 0.94, 0.05
_LINE, _LINE_CHARS = 0.018, 92
_PER_PAGE = 3
_PICTURE_HEIGHT = 0.235
_FONT: dict[Any, Any] = {"font.family": "sans-serif", "pdf.fonttype": 42, "text.parse_math": False}
"""Fonts are embedded, so that text can be searched; a dollar is no formula."""


def write_document(report: MiningReport, place: Path) -> None:
    """Write the PDF.

    Raises:
        OSError: The place cannot be written to.
    """
    made = place.with_name(f".{place.name}.new")
    about = {"Title": f"Turntide report, {wording.days(report.period)}", "Creator": "turntide"}
    with mpl.rc_context(_FONT), PdfPages(made, metadata=about) as pages:
        for figure in (*_text_pages(report), *_picture_pages(report)):
            pages.savefig(figure)
    made.replace(place)


class _PdfPage:
    """A page that is filled from the top."""

    def __init__(self) -> None:
        self.figure = Figure(figsize=_A4_IN)
        self.at = _TOP

    def holds(self, lines: int) -> bool:
        return self.at - lines * _LINE > _BOTTOM

    def put(self, said: str, *, size: float = 10, colour: str = "ink", weight: str = "normal") -> None:
        self.figure.text(_MARGIN, self.at, said, size=size, color=by_value(colour), weight=weight, va="top")
        self.at -= _LINE * (said.count("\n") + 1) * size / 10

    def leave(self, lines: float) -> None:
        self.at -= lines * _LINE


def _text_pages(report: MiningReport) -> Iterator[Figure]:
    page = _PdfPage()
    page.put("Turntide report", size=20, weight="bold")
    page.put(f"{wording.days(report.period)}, held against {wording.days(report.period.earlier)} (UTC)", colour="faint")
    page.leave(1)
    for said in _said_first(report):
        page.put(textwrap.fill(said, _LINE_CHARS), colour="bad")
    _put_headline(page, report)
    page.leave(1)
    page.put("Findings", size=14, weight="bold")
    page.leave(0.5)
    if not report.findings:
        page.put("Nothing stands out in this period.", colour="faint")
    for found in report.findings:
        lines = _lines_of(found)
        if not page.holds(sum(map(len, lines)) + 2):
            yield page.figure
            page = _PdfPage()
        _put_finding(page, found, lines)
    yield page.figure


def _said_first(report: MiningReport) -> Iterator[str]:
    if report.is_empty:
        yield "The archive holds nothing of this period."
    for part in report.failed:
        yield f"{part.title} could not be made as a whole: {part.failure}."


def _put_headline(page: _PdfPage, report: MiningReport) -> None:
    overview = next((part for part in report.parts if part.name == "overview"), None)
    if overview is None:
        return
    for figure in headline_figures(overview):
        change = wording.change(figure, overview.before(figure))
        shade = {True: "good", False: "bad", None: "faint"}[change.good]
        for x, said, colour in (
            (0.0, wording.label(figure.name), "faint"),
            (0.35, wording.value(figure.name, figure.value), "ink"),
            (0.55, change.text, shade),
        ):
            page.figure.text(_MARGIN + x, page.at, said, size=11, color=by_value(colour), va="top")
        page.leave(1.2)


def _lines_of(found: TopFinding) -> tuple[list[str], list[str]]:
    finding = found.shown.finding
    said = f"{finding.text} {evidence(found.shown)}."
    return textwrap.wrap(finding.title, _LINE_CHARS - 12), textwrap.wrap(said, _LINE_CHARS)


def _put_finding(page: _PdfPage, found: TopFinding, lines: tuple[Sequence[str], Sequence[str]]) -> None:
    title, text = lines
    page.put("\n".join(title), size=11, weight="bold")
    page.put("\n".join(text))
    page.put(found.part.title, size=8, colour="faint")
    page.leave(0.6)


def _picture_pages(report: MiningReport) -> Iterator[Figure]:
    pictures = [(part.title, picture) for part in report.parts for picture in part.pictures]
    for first in range(0, len(pictures), _PER_PAGE):
        figure = Figure(figsize=_A4_IN)
        for row, (section, picture) in enumerate(pictures[first : first + _PER_PAGE]):
            _put_picture(figure, row, section, picture)
        yield figure


def _put_picture(figure: Figure, row: int, section: str, picture: Drawn) -> None:
    top = _TOP - row * (_TOP - _BOTTOM) / _PER_PAGE
    caption = textwrap.fill(picture.caption, _LINE_CHARS + 12)
    figure.text(_MARGIN, top, picture.title, size=12, weight="bold", color=by_value("ink"), va="top")
    figure.text(1 - _MARGIN, top, section, size=9, color=by_value("faint"), va="top", ha="right")
    axes = figure.add_axes((_MARGIN, top - _LINE * 1.2 - _PICTURE_HEIGHT, 1 - 2 * _MARGIN, _PICTURE_HEIGHT))
    axes.imshow(imread(BytesIO(png_of(picture)), format="png"))
    axes.set_anchor("NW")
    axes.axis("off")
    figure.text(_MARGIN, top - _LINE * 1.4 - _PICTURE_HEIGHT, caption, size=8.5, color=by_value("faint"), va="top")
