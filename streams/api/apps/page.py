"""The page of statistics of apps' memories: one HTML document, drawn here, with nothing loaded from anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import NamedTuple

from streams.api.apps.figures import SpaceStats, Statistics
from streams.http import docs_page

HEADERS = {**docs_page.HEADERS, "Cache-Control": "no-store", "Vary": "Accept"}
_MOST_BARS = 12
_NAME_CHARS = 20
_WIDTH, _ROW, _NAME_WIDTH, _NUMBER_WIDTH = 360, 24, 132, 62
"""Of a picture, in its own units: about pixels on a phone of 390."""

_STYLE = """
:root{color-scheme:light dark;--ground:#fff;--card:#f5f6f8;--ink:#1b1f24;--faint:#5b6470;--bar:#2f6fde;--line:#d8dce2}
@media(prefers-color-scheme:dark){:root{--ground:#14171b;--card:#1d2127;--ink:#e8eaed;--faint:#9aa4b1;--bar:#6ea0ff;
--line:#343a43}}
*{box-sizing:border-box}
body{margin:0 auto;padding:16px;max-width:1180px;background:var(--ground);color:var(--ink);
font:15px/1.45 system-ui,sans-serif}
h1{font-size:1.3rem;margin:.2em 0}h2{font-size:1rem;margin:0 0 .1em}
p{margin:.2em 0 .8em;color:var(--faint)}
.sums{display:grid;grid-template-columns:repeat(auto-fit,minmax(104px,1fr));gap:8px;margin:12px 0}
.sums div,section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 12px}
.sums b{display:block;font-size:1.25rem;font-variant-numeric:tabular-nums}.sums span{color:var(--faint)}
.pictures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,340px),1fr));gap:12px}
svg{display:block;width:100%;height:auto}
svg text{font:12px system-ui,sans-serif;fill:var(--ink)}svg .n{text-anchor:end;font-variant-numeric:tabular-nums}
svg .b{fill:var(--bar)}svg .t{fill:var(--line)}
.table{overflow-x:auto;margin-top:12px}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:4px 8px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left}
"""


class _Measure(NamedTuple):
    title: str
    means: str
    of: Callable[[SpaceStats], float]


_MEASURES = (
    _Measure("Memories", "kept now", lambda space: space.memories),
    _Measure("Created", "of all time", lambda space: space.created),
    _Measure("Compactions", "an eleventh memory had to go, or be merged", lambda space: space.compactions),
    _Measure("Energy spent", "units, of all time", lambda space: space.energy.spent_units),
    _Measure("Skipped", "conversations that no memory was made of", lambda space: space.skipped),
    _Measure("Conflicts", "memories that contradict another", lambda space: space.conflicting),
)


def page(counted: Statistics) -> str:
    """The whole document. Names of apps and users are what producers sent: they are escaped."""
    totals = counted.totals
    share = totals.with_memories / totals.spaces if totals.spaces else 0.0
    sums = (
        ("spaces", totals.spaces),
        ("of them with memories", f"{share:.0%}"),
        ("memories", totals.memories),
        ("created", totals.created),
        ("compactions", totals.compactions),
        ("skipped", totals.skipped),
        ("waiting", totals.waiting),
        ("energy units", f"{totals.spent_units:,.0f}"),
    )
    beyond = " There are more than are shown: ask with <code>?limit=</code>." if counted.more else ""
    body = [
        "<h1>Memories of apps</h1>",
        f"<p>As of {counted.at:%Y-%m-%d %H:%M:%S} UTC, those that spent most first.{beyond}</p>",
        '<div class="sums">',
        *(f"<div><b>{value}</b><span>{name}</span></div>" for name, value in sums),
        "</div>",
    ]
    if counted.spaces:
        pictures = (_section(measure, counted.spaces) for measure in _MEASURES)
        body += ['<div class="pictures">', *pictures, "</div>", _table(counted.spaces)]
    else:
        body.append("<p>No conversation became a memory yet: memories are made when conversations end.</p>")
    return _document("\n".join(body))


def _document(body: str) -> str:
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Turntide: memories of apps</title><style>{_STYLE}</style>"
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def _section(measure: _Measure, spaces: Sequence[SpaceStats]) -> str:
    ranked = sorted(spaces, key=lambda space: -measure.of(space))[:_MOST_BARS]
    left = f", the first {_MOST_BARS} of {len(spaces)}" if len(spaces) > _MOST_BARS else ""
    picture = _bars(measure, ranked)
    return f"<section><h2>{measure.title}</h2><p>{measure.means}{left}</p>{picture}</section>"


def _bars(measure: _Measure, spaces: Sequence[SpaceStats]) -> str:
    """A horizontal bar for each space, its name before it and its number behind it."""
    highest = max(map(measure.of, spaces)) or 1.0
    room = _WIDTH - _NAME_WIDTH - _NUMBER_WIDTH
    rows: list[str] = []
    for row, space in enumerate(spaces):
        name, value, top = _name(space), measure.of(space), row * _ROW
        shown = name if len(name) <= _NAME_CHARS else name[: _NAME_CHARS - 1] + "…"
        middle = top + _ROW * 2 // 3
        rows.append(
            f"<g><title>{escape(name)}: {value:,.0f}</title>"
            f'<text x="0" y="{middle}">{escape(shown)}</text>'
            f'<rect class="t" x="{_NAME_WIDTH}" y="{top + 6}" width="{room}" height="12" rx="3"/>'
            f'<rect class="b" x="{_NAME_WIDTH}" y="{top + 6}" width="{room * value / highest:.1f}" height="12" rx="3"/>'
            f'<text class="n" x="{_WIDTH}" y="{middle}">{value:,.0f}</text></g>'
        )
    size = f'viewBox="0 0 {_WIDTH} {_ROW * len(spaces)}"'
    return f'<svg {size} role="img" aria-label="{measure.title} by app">{"".join(rows)}</svg>'


def _table(spaces: Sequence[SpaceStats]) -> str:
    heads = ("App", *(measure.title for measure in _MEASURES), "Edited", "Waiting", "Energy left")
    rows = (
        (
            _name(space) + (" (uninstalled)" if space.uninstalled else ""),
            *(f"{measure.of(space):,.0f}" for measure in _MEASURES),
            f"{space.edited:,}",
            f"{space.waiting:,}",
            f"{space.energy.level_units:,.0f} of {space.energy.capacity_units:,.0f}",
        )
        for space in spaces
    )
    body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    return f'<div class="table"><table><thead><tr>{_cells("th", heads)}</tr></thead><tbody>{body}</tbody></table></div>'


def _cells(tag: str, values: Iterable[str]) -> str:
    return "".join(f"<{tag}>{escape(value)}</{tag}>" for value in values)


def _name(space: SpaceStats) -> str:
    return f"{space.app_id} / {space.user_id}" if space.user_id else space.app_id
