"""Topics of one session over its turns, as SVG: when each was spoken of, packed, unpacked and evicted."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from models.events import TopicChanged

_WIDTH, _LABELS, _RIGHT = 720.0, 250.0, 8.0
_ROW = 15.0
_TITLE_CHARS = 44
_AXIS = 16.0
_MARKS = {
    "compacted": ("packed", "M-4 -3 h8 l-4 7 z"),
    "unpacked": ("unpacked", "M-4 4 h8 l-4 -7 z"),
    "evicted": ("evicted", "M-3 -3 l6 6 M-3 3 l6 -6"),
}
"""Cause → class, which is also the word for it, and path around the middle of the row."""


def topic_timeline(session_id: str, changes: Sequence[TopicChanged]) -> str:
    """One row a topic, in the order of their beginning; the horizontal axis is the turn number.

    A dot is a turn of the topic, a line the time for which the session kept it.
    """
    rows: dict[str, list[TopicChanged]] = {}
    for change in changes:
        rows.setdefault(change.topic_id, []).append(change)
    last = max((change.turn for change in changes), default=0)
    height = _ROW * len(rows) + _AXIS
    drawn = [_row(n, own, last) for n, own in enumerate(rows.values())]
    drawn += [f'<text x="{_x(turn, last) - 4:.1f}" y="{height - 3:.1f}">{turn}</text>' for turn in sorted({0, last})]
    label = escape(f"Topics of session {session_id}", quote=True)
    return f'<svg viewBox="0 0 {_WIDTH:g} {height:g}" role="img" aria-label="{label}">{"".join(drawn)}</svg>'


def _x(turn: int, last: int) -> float:
    return _LABELS + turn / max(last, 1) * (_WIDTH - _LABELS - _RIGHT)


def _row(number: int, changes: Sequence[TopicChanged], last: int) -> str:
    middle = _ROW * (number + 0.5)
    turns = sorted({turn for change in changes for turn in (*change.active_turns, *change.packed_turns)})
    final = changes[-1]
    ends = last if final.kept else final.turn
    title = final.title if len(final.title) <= _TITLE_CHARS else final.title[: _TITLE_CHARS - 1] + "…"
    x1, x2 = _x(turns[0] if turns else ends, last), _x(ends, last)
    drawn = [
        f'<text x="0" y="{middle + 3:.1f}">{escape(title)}</text>',
        f'<line class="axis" x1="{x1:.1f}" x2="{x2:.1f}" y1="{middle:.1f}" y2="{middle:.1f}"/>',
    ]
    drawn += [f'<circle class="said" cx="{_x(turn, last):.1f}" cy="{middle:.1f}" r="1.8"/>' for turn in turns]
    for change in changes:
        if change.cause in _MARKS:
            kind, path = _MARKS[change.cause]
            drawn.append(
                f'<path class="{kind}" transform="translate({_x(change.turn, last):.1f} {middle:.1f})" d="{path}">'
                f"<title>turn {change.turn}: {kind}</title></path>"
            )
    return "".join(drawn)
