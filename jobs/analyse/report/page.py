"""The report as one HTML file: nothing is loaded from anywhere, for light and dark, wide and narrow screens, and paper.

The page forbids itself the network and every script but its own two, by their digests.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

import msgspec

from jobs.analyse.report import wording
from jobs.analyse.report.card import card_png
from jobs.analyse.report.gathering import MiningReport, Part
from jobs.analyse.report.page_parts import ROWS_SHOWN, cards, finding_html, headline_cards, made_rows, table_html
from jobs.analyse.report.pictures import Drawn, file_name, for_page, png_of, script
from jobs.analyse.report.theme import variables

_FIRST = "overview"
"""Its first pictures stand at the top of the page."""
_PICTURES_AT_THE_TOP = 2
_ROWS_OPEN = 12
"""A longer table is folded: its picture says more."""


def render(report: MiningReport) -> str:
    """The page; every name and text in it is escaped."""
    page = _PageBuilder(report)
    own, vega = _text("page.js"), script()
    return Template(_text("page.html")).substitute(
        period=wording.days(report.period),
        earlier=wording.days(report.period.earlier),
        hashes=" ".join(f"'sha256-{_digest(each)}'" for each in (vega, own)),
        light=variables("light"),
        dark=variables("dark"),
        contents="".join(page.contents()),
        warnings="".join(f'<p class="warning">{escape(said)}</p>' for said in _warnings(report)),
        headline=page.headline(),
        findings=page.findings(),
        sections="".join(page.section(part) for part in report.parts),
        made="".join(made_rows(report)),
        min_sessions=report.anonymity.min_sessions,
        min_users=report.anonymity.min_users,
        pictures="".join(page.specs),
        vega=vega,
        script=own,
    )


def _text(name: str) -> str:
    return (files("jobs.analyse.report") / name).read_text("utf-8")


def _digest(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()


def _warnings(report: MiningReport) -> Iterator[str]:
    if not report.archive.turns:
        yield "The archive is empty: `turntide demo` or `turntide produce` fill it."
    elif report.is_empty:
        yield "The archive holds nothing of this period: --days, --since and --until say another one."
    for part in report.failed:
        yield f"{part.title} could not be made as a whole: {part.failure}. The rest of the report stands."
    damaged = {day for part in report.parts if part.result for day in part.result.section.days_left_out}
    if damaged:
        days = ", ".join(map(str, sorted(damaged)))
        yield f"Left out, because their files are damaged: {days}. `turntide archive verify` says more."


class _PageBuilder:
    """Builds the parts in their order; pictures leave their data behind, to stand at the end."""

    def __init__(self, report: MiningReport) -> None:
        self._report = report
        self.specs: list[str] = []

    def contents(self) -> Iterator[str]:
        places = [("headline", "Headline"), ("findings", "Top findings")]
        places += [(part.name, part.title) for part in self._report.parts]
        for place, title in [*places, ("made", "How it was made")]:
            yield f'<li><a href="#{escape(place)}">{escape(title)}</a></li>'

    def headline(self) -> str:
        first = next((part for part in self._report.parts if part.name == _FIRST), None)
        shown = headline_cards(first, self._report.archive)
        pictures = "" if first is None else self._pictures(first.name, first.pictures[:_PICTURES_AT_THE_TOP])
        return f'<h2 id="headline">Headline</h2>{shown}{pictures}'

    def findings(self) -> str:
        top = self._report.top_findings
        shown = "".join(f"<li>{finding_html(*each, in_section=False)}</li>" for each in top)
        more = len(self._report.findings) - len(top)
        said = f'<p class="faint">{more:,} more stand in the sections.</p>' if more > 0 else ""
        nothing = '<p class="faint">Nothing stands out in this period.</p>'
        listed = f'<ol class="findings">{shown}</ol>' if shown else nothing
        return (
            '<h2 id="findings">Top findings</h2><p class="faint">Of all sections, the strongest first: how far each is '
            f"from what chance or habit would give.</p>{listed}{said}"
        )

    def section(self, part: Part) -> str:
        head = f'<section aria-labelledby="{escape(part.name)}"><h2 id="{escape(part.name)}">{escape(part.title)}</h2>'
        head += f'<p class="faint">{escape(part.question)}</p>'
        if part.failure:
            head += f'<p class="warning">Could not be made: {escape(part.failure)}.</p>'
        if part.result is None:
            return f"{head}</section>"
        section = part.result.section
        pictures = part.pictures[_PICTURES_AT_THE_TOP:] if part.name == _FIRST else part.pictures
        return "".join(
            (
                head,
                "".join(f"<p>{escape(note)}</p>" for note in section.notes),
                cards(part),
                self._pictures(part.name, pictures),
                _findings(part),
                "".join(_table(part, name) for name in section.tables),
                "".join(f'<p class="faint">{escape(said)}</p>' for said in _about(part)),
                "</section>",
            )
        )

    def _pictures(self, job: str, pictures: Sequence[Drawn]) -> str:
        shown = "".join(self._picture(f"picture-{job}-{len(self.specs)}", picture) for picture in pictures)
        return f'<div class="pictures">{shown}</div>' if shown else ""

    def _picture(self, place: str, picture: Drawn) -> str:
        data = msgspec.json.encode(for_page(picture), enc_hook=str).decode().replace("<", "\\u003c")
        self.specs.append(f'<script type="application/json" id="{escape(place)}">{data}</script>')
        wide = ' class="several"' if picture.is_several else ""
        said = escape(picture.description, quote=True)
        return (
            f"<figure{wide}><h3>{escape(picture.title)}</h3>"
            f'<div class="picture" role="img" aria-label="{said}" data-spec="{escape(place)}"></div>'
            f"<figcaption>{escape(picture.caption)}</figcaption></figure>"
        )


def _findings(part: Part) -> str:
    assert part.result is not None  # noqa: S101 - asked for parts with a result alone
    findings = part.result.section.findings
    shown = "".join(f"<li>{finding_html(part, each, in_section=True)}</li>" for each in findings)
    return f'<h4>Findings</h4><ol class="findings">{shown}</ol>' if shown else ""


def _table(part: Part, name: str) -> str:
    assert part.result is not None  # noqa: S101 - as above
    table, frame = part.result.section.tables[name], part.result.tables[name]
    said = [table.meaning] if table.meaning else []
    if frame.height > ROWS_SHOWN:
        said.append(f"The first {ROWS_SHOWN} of {frame.height:,} rows.")
    if table.left_out:
        said.append(f"{wording.counted(table.left_out, 'row')} about too few sessions or users left out.")
    rows = '<p class="faint">No rows.</p>'
    if frame.height:
        label = escape(table.title, quote=True)
        rows = f'<div class="wide" tabindex="0" role="region" aria-label="{label}">'
        rows += f"{table_html(f'table-{part.name}-{name}', frame)}</div>"
    if frame.height > _ROWS_OPEN:
        rows = f"<details><summary>{wording.counted(min(frame.height, ROWS_SHOWN), 'row')}</summary>{rows}</details>"
    return f'<h4>{escape(table.title)}</h4><p class="faint">{escape(" ".join(said))}</p>{rows}'


def _about(part: Part) -> Iterator[str]:
    assert part.result is not None  # noqa: S101 - as above
    section = part.result.section
    if section.findings_left_out:
        yield f"{wording.counted(section.findings_left_out, 'finding')} about too few sessions or users left out."
    earlier = None if part.earlier is None else part.earlier.section
    before = "" if earlier is None else f", {earlier.days} of {earlier.period.days} before"
    yield (
        f"Made at {section.made_at:%Y-%m-%d %H:%M} UTC in {wording.rounded(section.seconds)} s; "
        f"{section.days} of {section.period.days} days have rows{before}."
    )


def write_page(report: MiningReport, place: Path) -> None:
    """Write the page.

    Raises:
        OSError: The place cannot be written to.
    """
    _put(place, render(report).encode())


def write_pictures(report: MiningReport, folder: Path) -> list[Path]:
    """Write the card for chat and each chart into a folder, which is made if there is none.

    Raises:
        OSError: The folder cannot be written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {"summary.png": card_png(report)}
    for part in report.parts:
        for number, picture in enumerate(part.pictures, 1):
            drawn[file_name(part.name, number, picture.title)] = png_of(picture)
    for name, content in drawn.items():
        _put(folder / name, content)
    return [folder / name for name in drawn]


def _put(place: Path, content: bytes) -> None:
    made = place.with_name(f".{place.name}.new")
    made.write_bytes(content)
    made.replace(place)
