"""The report as one picture for chat: headline numbers with their change, and the strongest findings."""

from __future__ import annotations

from html import escape
from itertools import islice

import vl_convert

from jobs.analyse.report import wording
from jobs.analyse.report.gathering import MiningReport, Part
from jobs.analyse.report.page_parts import headline_figures
from jobs.analyse.report.theme import by_value
from models.language.notable import clipped

_WIDTH, _HEIGHT, _MARGIN = 1_000, 560, 40
_COLUMNS, _ROW_HEIGHT, _TOP = 4, 100, 120
_NUMBERS = 8
_FINDINGS, _FINDING_HEIGHT, _TITLE_CHARS = 3, 46, 70
_SCALE = 1.5


def card_png(report: MiningReport) -> bytes:
    """The card as PNG."""
    drawn: bytes = vl_convert.svg_to_png(card_svg(report), scale=_SCALE)
    return drawn


def card_svg(report: MiningReport) -> str:
    """The card as SVG, on a light ground; every text in it is escaped."""
    overview = next((part for part in report.parts if part.name == "overview"), None)
    drawn = [
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="{by_value("page")}"/>',
        _text(_MARGIN, 58, "Turntide report", size=30, weight="bold"),
        _text(_MARGIN, 88, _period(report), size=17, colour="faint"),
    ]
    if overview is not None:
        for at, figure in enumerate(headline_figures(overview)[:_NUMBERS]):
            row, column = divmod(at, _COLUMNS)
            x = _MARGIN + column * (_WIDTH - 2 * _MARGIN) // _COLUMNS
            y = _TOP + row * _ROW_HEIGHT
            change = wording.change(figure, overview.before(figure))
            shade = {True: "good", False: "bad", None: "faint"}[change.good]
            drawn += [
                _text(x, y + 20, wording.label(figure.name), size=15, colour="faint"),
                _text(x, y + 54, wording.value(figure.name, figure.value), size=30),
                _text(x, y + 76, change.text, size=15, colour=shade),
            ]
    top = _TOP + 2 * _ROW_HEIGHT + 20
    drawn.append(f'<path d="M{_MARGIN} {top}H{_WIDTH - _MARGIN}" stroke="{by_value("line")}"/>')
    drawn += _findings(report, top + 34)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif">'
        f"{''.join(drawn)}</svg>"
    )


def _findings(report: MiningReport, top: int) -> list[str]:
    if not report.findings:
        said = "The archive holds nothing of this period." if report.is_empty else "Nothing stands out in this period."
        return [_text(_MARGIN, top, said, size=19)]
    drawn = []
    for at, (part, shown) in enumerate(islice(report.top_findings, _FINDINGS)):
        y = top + at * _FINDING_HEIGHT
        drawn += [
            _text(_MARGIN, y, clipped(shown.finding.title, _TITLE_CHARS), size=19),
            _text(_WIDTH - _MARGIN, y, _counts(part, shown.users), size=15, colour="faint", anchor="end"),
        ]
    if (more := len(report.findings) - _FINDINGS) > 0:
        y = top + _FINDINGS * _FINDING_HEIGHT
        drawn.append(_text(_MARGIN, y, f"and {wording.counted(more, 'more finding')}", size=15, colour="faint"))
    return drawn


def _counts(part: Part, users: int) -> str:
    return f"{part.title}, {wording.counted(users, 'user')}"


def _period(report: MiningReport) -> str:
    return f"{wording.days(report.period)}, held against {wording.days(report.period.earlier)}"


def _text(
    x: int, y: int, said: str, *, size: int, colour: str = "ink", weight: str = "normal", anchor: str = "start"
) -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" '
        f'fill="{by_value(colour)}">{escape(said)}</text>'
    )
