"""`turntide project report`: a project as one HTML file with pictures; nothing is loaded from anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Annotated

import typer

from jobs.memory.project_asking import app
from jobs.memory.project_saving import exported
from jobs.shared.options import AppArgument, ProjectArgument
from jobs.shared.role_api import CommandContext, role_command
from models.errors import ConfigurationError
from models.events.project_items import ProjectEpisode, ProjectMemory
from models.project.saved import SavedProject
from streams.embedded.project_folder import replace_file

_COUNTED = (
    ("memories", "memories"),
    ("episodes", "episodes"),
    ("chunks", "chunks"),
    ("conversations", "conversations"),
    ("pending", "pending facts"),
)
_STYLE = (
    ":root{color-scheme:light}body{margin:0 auto;padding:16px;max-width:1100px;font:15px/1.45 system-ui,sans-serif;"
    "background:#fff;color:#1b1f24}h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:1.6em}svg{width:100%;height:auto}"
    ".wide{overflow-x:auto}table{border-collapse:collapse;width:100%}th,td{padding:4px 8px;text-align:left;"
    "border-bottom:1px solid #d8dce2;vertical-align:top}.wide svg,.wide table{min-width:44rem}"
)

_ONLY_IN_FILES = re.compile(r"<metadata>.*?</metadata>|\sxmlns(?::\w+)?=\"[^\"]*\"", re.DOTALL)


@role_command(app, "turntide project report shop web -o web.html")
def report(
    role: CommandContext,
    app_id: AppArgument,
    project: ProjectArgument,
    *,
    to: Annotated[Path, typer.Option("-o", "--file", help="Where to.")] = Path("project.html"),
) -> None:
    """Draw a project: narrative arcs, the graph of its memories, chunks, and all memories as a table."""
    saved, _ = exported(role.api, app_id, project)
    page = report_page(project, saved)
    try:
        replace_file(to, page)
    except OSError as error:
        raise ConfigurationError(f"cannot write {to}: {error.strerror}. Name another file with -o") from error
    role.output.record({"file": str(to), "memories": len(saved.memories), "bytes": len(page.encode())})


def report_page(project: str, saved: SavedProject) -> str:
    """The whole document."""
    parts = [f"<h1>{escape(project)}</h1>", counted_html(saved)]
    parts += [f"<h2>{escape(title)}</h2>{section}" for title, section in project_sections(saved)]
    head = f'<meta charset="utf-8"><title>{escape(project)}</title><style>{_STYLE}</style>'
    viewport = '<meta name="viewport" content="width=device-width,initial-scale=1">'
    return f"<!doctype html><html lang=en><head>{head}{viewport}</head><body>{''.join(parts)}</body></html>\n"


def counted_html(saved: SavedProject) -> str:
    """How many items there are of each kind, as a paragraph."""
    return f"<p>{' · '.join(f'{words}: {len(getattr(saved, name))}' for name, words in _COUNTED)}</p>"


def project_sections(saved: SavedProject) -> Iterable[tuple[str, str]]:
    """Title and content of each part of a page: narrative arcs, the graph, memories by type, chunks.

    All text is escaped; what is wider than a screen stands in an element of the class `wide`, to be moved sideways.
    """
    yield from _arcs(saved)
    yield from _graph(saved)
    yield (
        "Memories",
        _table(
            ("type", "content", "from", "until", "importance", ""),
            (
                (
                    each.type.value,
                    each.content,
                    *_validity(each),
                    f"{each.importance:.2f}",
                    "archived" if each.archived else "",
                )
                for each in sorted(saved.memories, key=lambda memory: (memory.type, memory.valid_from, memory.id))
            ),
        ),
    )
    yield (
        "Chunks",
        _table(
            ("conversation", "turns", "summary", "topics", "tokens"),
            (
                (
                    each.conversation_id,
                    f"{each.first_turn}-{each.last_turn}",
                    each.summary,
                    ", ".join(each.key_topics),
                    f"{each.token_count} → {each.summary_tokens}",
                )
                for each in sorted(saved.chunks, key=lambda chunk: (chunk.conversation_id, chunk.first_number))
            ),
        ),
    )


def _validity(memory: ProjectMemory) -> tuple[str, str]:
    until = "" if memory.valid_until is None else f"{memory.valid_until:%Y-%m-%d %H:%M}"
    return f"{memory.valid_from:%Y-%m-%d %H:%M}", until


def _arcs(saved: SavedProject) -> Iterable[tuple[str, str]]:
    from jobs.memory.project_pictures import narrative_arc_svg

    by_conversation: dict[str, list[ProjectEpisode]] = {}
    for each in saved.episodes:
        by_conversation.setdefault(each.conversation_id, []).append(each)
    turns = {each.id: each.total_turns for each in saved.conversations}
    for name, episodes in sorted(by_conversation.items(), key=lambda each: -len(each[1])):
        last = max([turns.get(name, 1) - 1, *(each.last_turn for each in episodes)])
        yield f"Narrative arc of {name}", _picture(narrative_arc_svg(episodes, (0, last), title=""))


def _graph(saved: SavedProject) -> Iterable[tuple[str, str]]:
    from jobs.memory.project_pictures import memory_graph_svg

    if any(each.relationships for each in saved.memories):
        yield "How memories stand to each other", _picture(memory_graph_svg(saved.memories, title=""))


def _picture(svg: str) -> str:
    """A picture without what only a file of its own has: its head, metadata and namespaces."""
    inline = _ONLY_IN_FILES.sub("", svg[svg.index("<svg") :])
    return f'<div class="wide">{inline}</div>'


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(each)}</th>" for each in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
