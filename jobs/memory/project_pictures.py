"""Pictures of a project's memory: the narrative arc of a conversation, and the graph of memories."""

import textwrap
from collections.abc import Sequence
from math import atan2, ceil, degrees, hypot
from typing import Any

import altair as alt
import networkx as nx  # type: ignore[import-untyped]

from jobs.shared.pictures import Drawn, data_of, drawn
from models.events.project_items import (
    CONTRADICTS,
    DEPENDS_ON,
    SUPERSEDES,
    EpisodeKind,
    MemoryType,
    ProjectEpisode,
    ProjectMemory,
)
from models.language.notable import clipped

WIDTH_PX = 900
_SMALL_PX = 10
_ROW_PX = 62
_ROWS = (
    EpisodeKind.PIVOT,
    EpisodeKind.BREAKTHROUGH,
    EpisodeKind.DECISION_MADE,
    EpisodeKind.TASK_COMPLETED,
    EpisodeKind.PROBLEM_SOLVED,
    EpisodeKind.ISSUE_IDENTIFIED,
)
_THIRDS = ("beginning", "middle", "end")
_DOT_AREA = 260.0
_FELT = 0.2
"""Valence from which an episode is drawn as a good or bad one."""
_TITLE_CHARS, _TITLE_LINE_CHARS = 54, 28
_TITLE_WIDTH = 0.22
"""Share of the width that a title takes: what follows within it stands below its row."""
_TYPE_COLOURS = {kind.value: f"var(--{series})" for kind, series in zip(MemoryType, "abcedfgh", strict=False)}
_RELATIONS = {SUPERSEDES: ([1, 0], "a"), CONTRADICTS: ([5, 3], "bad"), DEPENDS_ON: ([2, 2], "b")}
_OTHER_RELATION = ([1, 0], "faint")
_LABEL_CHARS, _LABEL_LINE_CHARS = 48, 25
_NODE_AREA = 340.0
_COLUMNS = 5
"""So many labels fit side by side."""
_COLUMN_PX, _DEPTH_PX = 172, 95


def narrative_arc(
    episodes: Sequence[ProjectEpisode], turns: tuple[int, int], *, title: str, key_moment: float = 0.7
) -> Drawn:
    """Episodes over a conversation's turns, a row for each kind; a dot's size is its significance.

    Args:
        episodes: Of one conversation.
        turns: Its first and last turn.
        title: What is seen.
        key_moment: Significance from which a moment is a key moment, which bears its title.
    """
    first, last = turns
    width = max(1, last - first)
    dots: list[dict[str, Any]] = []
    titled: dict[EpisodeKind, float] = {}
    for each in sorted(episodes, key=lambda each: (each.first_turn, each.id)):
        middle = (each.first_turn + each.last_turn) / 2
        share, name, up = (middle - first) / width, "", False
        if each.significance >= key_moment:
            name = textwrap.fill(clipped(each.title, _TITLE_CHARS), _TITLE_LINE_CHARS)
            up = share - titled.get(each.kind, -1.0) > _TITLE_WIDTH
            titled[each.kind] = share if up else -1.0
        dots.append(
            {"kind": each.kind.replace("_", " "), "first": each.first_turn, "last": each.last_turn, "middle": middle}
            | {"area": _DOT_AREA * each.significance**2, "felt": _felt(each.emotional_valence), "title": name, "up": up}
            | {"leftwards": share > 1 - _TITLE_WIDTH, "said": each.title}
        )
    thirds = [{"at": first + width * (n + 0.5) / 3, "name": name} for n, name in enumerate(_THIRDS)]
    borders = [{"at": first + width * n / 3} for n in (1, 2)]
    x = alt.X("middle:Q", title="turn").scale(domain=[first - width * 0.02, first + width * 1.02], nice=False)
    base = alt.Chart(data_of(dots)).encode(
        y=alt.Y("kind:N", title=None).scale(domain=[kind.replace("_", " ") for kind in _ROWS]),
        color=alt.Color("felt:N", scale=None),
    )
    chart = alt.layer(
        alt.Chart(data_of(borders)).mark_rule(strokeDash=[2, 3]).encode(x="at:Q"),
        alt.Chart(data_of(thirds)).mark_text(y=-8, color="var(--faint)").encode(x="at:Q", text="name:N"),
        base.mark_rule(strokeWidth=3, opacity=0.5).encode(x="first:Q", x2="last:Q"),
        base.mark_circle(opacity=1).encode(
            x=x.axis(grid=False, tickMinStep=1), size=alt.Size("area:Q", scale=None), description="said:N"
        ),
        base.mark_text(
            fontSize=_SMALL_PX,
            lineBreak="\n",
            align=alt.expr("datum.leftwards ? 'right' : 'left'"),
            baseline=alt.expr("datum.up ? 'line-bottom' : 'line-top'"),
            dy=alt.expr("datum.up ? -8 - 10 * (length(split(datum.title, '\\n')) - 1) : 9"),
        ).encode(x="middle:Q", text="title:N", color=alt.value("var(--ink)")),
    )
    said = "A dot is an episode, the larger the more significant; green went well, red badly; a line spans its turns."
    return drawn(title, said, chart.properties(height={"step": _ROW_PX}))


def memory_graph(memories: Sequence[ProjectMemory], *, title: str, most: int = 40) -> Drawn:
    """Memories that have a relationship; size is importance, a hollow one holds no longer.

    Args:
        memories: Of a project. Relationships to others are left out; how many are not drawn is said.
        title: What is seen.
        most: Drawn at most, the most important.
    """
    related = {end for each in memories for edge in each.relationships for end in (each.id, edge.target_id)}
    ranked = sorted((each for each in memories if each.id in related), key=lambda each: (-each.importance, each.id))
    known = {memory.id: memory for memory in ranked[:most]}
    graph = nx.DiGraph()
    for memory in known.values():
        for edge in memory.relationships:
            if edge.target_id in known and edge.target_id != memory.id:
                graph.add_edge(memory.id, edge.target_id, type=edge.type)
    places = _places(graph)
    nodes: list[dict[str, Any]] = [
        {
            "x": x,
            "y": y,
            "type": known[memory_id].type.value,
            "area": _NODE_AREA * known[memory_id].importance,
            "holds": float(known[memory_id].valid_until is None and not known[memory_id].archived),
            "text": textwrap.fill(clipped(known[memory_id].content, _LABEL_CHARS), _LABEL_LINE_CHARS),
            "said": known[memory_id].content,
        }
        for memory_id, (x, y) in places.items()
    ]
    edges = [_edge(places[source], places[target], edge["type"]) for source, target, edge in graph.edges(data=True)]
    height = max((y for _, y in places.values()), default=0.0) + _DEPTH_PX * 0.6
    axis_x = alt.X("x:Q", axis=None).scale(domain=[0, _COLUMNS * _COLUMN_PX], nice=False)
    axis_y = alt.Y("y:Q", axis=None).scale(domain=[height, 0], nice=False)
    types = sorted({node["type"] for node in nodes})
    type_colours: dict[str, Any] = {"domain": types, "range": [_TYPE_COLOURS[name] for name in types]}
    relations = sorted({edge["relation"] for edge in edges})
    looks = [_RELATIONS.get(name.replace(" ", "_"), _OTHER_RELATION) for name in relations]
    colour = alt.Stroke("relation:N", title=None).scale(domain=relations, range=[f"var(--{name})" for _, name in looks])
    dash = alt.StrokeDash("relation:N", legend=None).scale(domain=relations, range=[dashes for dashes, _ in looks])
    drawn_edges = alt.Chart(data_of(edges)).encode(x=axis_x, y=axis_y)
    drawn_nodes = alt.Chart(data_of(nodes)).encode(x=axis_x, y=axis_y)
    chart = alt.layer(
        drawn_edges.mark_rule().encode(x2="x2:Q", y2="y2:Q", stroke=colour, strokeDash=dash),
        drawn_edges.mark_point(shape="triangle", size=45, opacity=1, strokeWidth=3).encode(
            x=alt.X("x2:Q", axis=None),
            y=alt.Y("y2:Q", axis=None),
            angle=alt.Angle("angle:Q", scale=None),
            stroke=colour.legend(None),
        ),
        drawn_nodes.mark_point(strokeWidth=1.5, opacity=1).encode(
            fill=alt.Fill("type:N", title=None).scale(**type_colours),
            stroke=alt.Stroke("type:N", legend=None).scale(**type_colours),
            fillOpacity=alt.FillOpacity("holds:Q", scale=None),
            size=alt.Size("area:Q", scale=None),
            description="said:N",
        ),
        drawn_nodes.mark_text(fontSize=_SMALL_PX, lineBreak="\n", dy=16, baseline="line-top").encode(text="text:N"),
    ).resolve_scale(stroke="independent")
    left = len(memories) - len(places)
    said = "A dot is a memory, the larger the more important; a hollow one holds no longer."
    said += f" {left:,} more are not drawn." if left else ""
    return drawn(title, said, chart.properties(height=height))


def _felt(valence: float) -> str:
    return f"var(--{'good' if valence >= _FELT else 'bad' if valence <= -_FELT else 'faint'})"


def _edge(start: tuple[float, float], end: tuple[float, float], relation: str) -> dict[str, Any]:
    """From dot to dot, without touching them; its head points to where it leads."""
    right, down = end[0] - start[0], end[1] - start[1]
    gap_x, gap_y = (14 * part / (hypot(right, down) or 1.0) for part in (right, down))
    return {
        "relation": relation.replace("_", " "),
        "angle": degrees(atan2(right, -down)),
        "x": start[0] + gap_x,
        "y": start[1] + gap_y,
        "x2": end[0] - gap_x,
        "y2": end[1] - gap_y,
    }


def _places(graph: nx.DiGraph) -> dict[str, tuple[float, float]]:
    """Where each memory stands, in pixels: parts of the graph side by side, the largest first."""
    places: dict[str, tuple[float, float]] = {}
    column, row, deepest = 0, 0, 0
    whole = graph.to_undirected()
    for part in sorted(nx.connected_components(whole), key=lambda ids: (-len(ids), min(ids))):
        width = min(_COLUMNS, ceil(len(part) ** 0.5))
        height = ceil(len(part) / width)
        if column + width > _COLUMNS:
            column, row, deepest = 0, row + deepest, 0
        laid = nx.kamada_kawai_layout(_sorted(whole.subgraph(part)))
        across, down = (_spread([float(place[axis]) for place in laid.values()]) for axis in (0, 1))
        for memory_id, right, below in zip(laid, across, down, strict=True):
            places[memory_id] = (
                (column + 0.5 + right * (width - 1)) * _COLUMN_PX,
                (row + 0.3 + below * (height - 1)) * _DEPTH_PX,
            )
        column, deepest = column + width, max(deepest, height)
    return places


def _sorted(part: nx.Graph) -> nx.Graph:
    """The same in a fixed order, on which the layout depends."""
    same = nx.Graph()
    same.add_nodes_from(sorted(part))
    same.add_edges_from(sorted(map(sorted, part.edges)))
    return same


def _spread(values: Sequence[float]) -> list[float]:
    lowest, highest = min(values), max(values)
    return [(value - lowest) / (highest - lowest or 1.0) for value in values]
