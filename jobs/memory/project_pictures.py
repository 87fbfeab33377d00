"""Pictures of a project's memory as SVG, to stand in a page: narrative arc and graph of memories.

Like those of measurements (`jobs.shared.charts`): transparent ground, colours of middle brightness, what is seen is
named where it stands, and the same project gives the same bytes. Needs the extra `report`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from io import StringIO
from math import ceil

import networkx as nx  # type: ignore[import-untyped]
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from matplotlib.ticker import MaxNLocator

from jobs.shared.charts import COLOURS, INK, style
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

_GOOD, _BAD, _NEUTRAL = COLOURS[2], "#d1495b", "#8f97a1"
_WIDTH_IN = 9.0
_ARC_HEIGHT_IN = 6.0
_SMALL_PT = 8
_ROWS = (
    EpisodeKind.PIVOT,
    EpisodeKind.BREAKTHROUGH,
    EpisodeKind.DECISION_MADE,
    EpisodeKind.TASK_COMPLETED,
    EpisodeKind.PROBLEM_SOLVED,
    EpisodeKind.ISSUE_IDENTIFIED,
)
_THIRDS = ("beginning", "middle", "end")
_DOT_AREA = 150.0
_FELT = 0.2
"""Valence from which an episode is drawn as a good or bad one."""
_TITLE_CHARS, _TITLE_LINE_CHARS = 54, 28
_TITLE_OFFSET_PT = 10
_TITLE_WIDTH = 0.22
"""Share of the width that a title takes: what follows within it stands below its row."""
_TYPE_COLOURS = dict(zip(MemoryType, (*COLOURS, "#c2679d", _BAD, "#2f9aa0"), strict=True))
_EDGES: Mapping[str, tuple[str, str]] = {
    SUPERSEDES: ("-", COLOURS[0]),
    CONTRADICTS: ("--", _BAD),
    DEPENDS_ON: (":", COLOURS[1]),
}
_OTHER_EDGE = ("-", _NEUTRAL)
_LABEL_CHARS, _LABEL_LINE_CHARS = 48, 25
_NODE_AREA = 260.0
_COLUMNS = 5
"""So many labels fit side by side."""
_ROW_IN, _AROUND_GRAPH_IN = 1.3, 1.0


def narrative_arc_svg(
    episodes: Sequence[ProjectEpisode], turns: tuple[int, int], *, key_moment: float = 0.7, title: str = "Narrative arc"
) -> str:
    """Episodes over a conversation's turns, a row for each kind; a dot's size is its significance.

    Green went well, red badly. A line spans the turns of an episode; key moments bear their titles.

    Args:
        episodes: Of one conversation.
        turns: Its first and last turn.
        key_moment: Significance from which a moment is a key moment.
        title: What is seen.
    """
    with style():
        figure, axes = _figure(title, _ARC_HEIGHT_IN)
        first, last = turns
        width = max(1, last - first)
        for number, name in enumerate(_THIRDS):
            if number:
                axes.axvline(first + width * number / 3, color=_NEUTRAL, linestyle=":", linewidth=1)
            axes.text(first + width * (number + 0.5) / 3, -0.9, name, ha="center", color=_NEUTRAL)
        titled: dict[EpisodeKind, float] = {}
        for episode in sorted(episodes, key=lambda each: (each.first_turn, each.id)):
            row = _ROWS.index(episode.kind)
            middle = (episode.first_turn + episode.last_turn) / 2
            colour = _felt(episode.emotional_valence)
            axes.plot([episode.first_turn, episode.last_turn], [row, row], color=colour, linewidth=3, alpha=0.5)
            axes.scatter([middle], [row], s=_DOT_AREA * episode.significance**2, color=colour, zorder=3)
            if episode.significance >= key_moment:
                share = (middle - first) / width
                up = share - titled.get(episode.kind, -1.0) > _TITLE_WIDTH
                _title_at(axes, episode, (middle, row), up=up, leftwards=share > 1 - _TITLE_WIDTH)
                titled[episode.kind] = share if up else -1.0
        axes.set_yticks(range(len(_ROWS)), [kind.value.replace("_", " ") for kind in _ROWS])
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(_ROWS) - 0.4, -1.2)
        axes.set_xlim(first - width * 0.02, first + width * 1.02)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("turn")
        return _svg(figure)


def memory_graph_svg(
    memories: Sequence[ProjectMemory], *, most: int = 40, title: str = "Memories and how they stand to each other"
) -> str:
    """Memories that have a relationship; size is importance, a hollow one holds no longer.

    Args:
        memories: Of a project. Relationships to others are left out; how many are not drawn is said.
        most: Drawn at most, the most important.
        title: What is seen.
    """
    related = {end for each in memories for edge in each.relationships for end in (each.id, edge.target_id)}
    ranked = sorted((each for each in memories if each.id in related), key=lambda each: (-each.importance, each.id))
    known = {memory.id: memory for memory in ranked[:most]}
    graph = nx.DiGraph()
    for memory in known.values():
        for edge in memory.relationships:
            if edge.target_id in known and edge.target_id != memory.id:
                graph.add_edge(memory.id, edge.target_id, type=edge.type, strength=edge.strength)
    with style():
        places = _places(graph)
        lowest = min((y for _, y in places.values()), default=-1.5) - 0.5
        figure, axes = _figure(title, _AROUND_GRAPH_IN - _ROW_IN * lowest)
        axes.set_axis_off()
        for source, target, edge in graph.edges(data=True):
            _draw_edge(axes, places[source], places[target], edge["type"])
        for memory_id, place in places.items():
            _draw_memory(axes, known[memory_id], place)
        types = {known[memory_id].type for memory_id in places}
        relations = {edge["type"] for _, _, edge in graph.edges(data=True)}
        _key(axes, types, relations, left_out=len(memories) - len(places))
        axes.set(xlim=(0, _COLUMNS), ylim=(lowest, 0))
        return _svg(figure)


def _felt(valence: float) -> str:
    return _GOOD if valence >= _FELT else _BAD if valence <= -_FELT else _NEUTRAL


def _title_at(axes: Axes, episode: ProjectEpisode, place: tuple[float, float], *, up: bool, leftwards: bool) -> None:
    text = textwrap.fill(clipped(episode.title, _TITLE_CHARS), _TITLE_LINE_CHARS)
    axes.annotate(
        text,
        place,
        (0, _TITLE_OFFSET_PT if up else -_TITLE_OFFSET_PT),
        textcoords="offset points",
        ha="right" if leftwards else "left",
        va="bottom" if up else "top",
        fontsize=_SMALL_PT,
        linespacing=1.0,
    )


def _places(graph: nx.DiGraph) -> dict[str, tuple[float, float]]:
    """Where each memory stands, in places of a label's width: parts of the graph side by side, the largest first."""
    places: dict[str, tuple[float, float]] = {}
    x, y, deepest = 0, 0, 0
    whole = graph.to_undirected()
    for part in sorted(nx.connected_components(whole), key=lambda ids: (-len(ids), min(ids))):
        width = min(_COLUMNS, ceil(len(part) ** 0.5))
        height = ceil(len(part) / width)
        if x + width > _COLUMNS:
            x, y, deepest = 0, y + deepest, 0
        laid = nx.kamada_kawai_layout(_sorted(whole.subgraph(part)))
        across, down = (_spread([float(place[axis]) for place in laid.values()]) for axis in (0, 1))
        for memory_id, right, below in zip(laid, across, down, strict=True):
            places[memory_id] = (x + 0.5 + right * (width - 1), -(y + 0.5 + below * (height - 1)))
        x, deepest = x + width, max(deepest, height)
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


def _draw_edge(axes: Axes, start: tuple[float, float], end: tuple[float, float], relation: str) -> None:
    line, colour = _EDGES.get(relation, _OTHER_EDGE)
    axes.add_patch(
        FancyArrowPatch(
            start, end, arrowstyle="-|>", mutation_scale=11, shrinkA=9, shrinkB=9, linestyle=line, color=colour
        )
    )


def _draw_memory(axes: Axes, memory: ProjectMemory, place: tuple[float, float]) -> None:
    colour = _TYPE_COLOURS[memory.type]
    holds = memory.valid_until is None and not memory.archived
    axes.scatter(
        *place,
        s=_NODE_AREA * memory.importance,
        facecolors=colour if holds else "none",
        edgecolors=colour,
        linewidths=1.5,
        zorder=3,
    )
    text = textwrap.fill(clipped(memory.content, _LABEL_CHARS), _LABEL_LINE_CHARS)
    axes.annotate(
        text, place, (0, -10), textcoords="offset points", ha="center", va="top", fontsize=_SMALL_PT, linespacing=1.0
    )


def _key(axes: Axes, types: set[MemoryType], relations: set[str], *, left_out: int) -> None:
    """Types and relationships in their colours, and how many memories are not drawn."""
    named = [(f"● {kind.value}", _TYPE_COLOURS[kind]) for kind in MemoryType if kind in types]
    drawn = [(f"→ {name.replace('_', ' ')}", _EDGES.get(name, _OTHER_EDGE)[1]) for name in sorted(relations)]
    rest = [(f"{left_out:,} more are not drawn", INK)] if left_out else []
    for row, words in enumerate((named, drawn + rest)):
        at = 0.0
        for text, colour in words:
            axes.annotate(
                text,
                (at, 0),
                (0, -14 - 14 * row),
                xycoords="axes fraction",
                textcoords="offset points",
                color=colour,
                fontsize=9,
                annotation_clip=False,
            )
            at += 0.025 + 0.0125 * len(text)


def _figure(title: str, height_in: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(_WIDTH_IN, height_in), layout="constrained")
    FigureCanvasSVG(figure)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure, figure.add_subplot()


def _svg(figure: Figure) -> str:
    """The element alone, without what precedes it in a file of its own."""
    written = StringIO()
    figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    text = written.getvalue()
    return text[text.index("<svg") :]
