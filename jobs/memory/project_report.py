"""`turntide memory project report`: a project as one HTML file with pictures; nothing is loaded from anywhere."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.memory.project_asking import app
from jobs.memory.project_saving import exported
from jobs.shared.options import AppArgument, ProjectArgument
from jobs.shared.role_api import CommandContext, role_command
from models.errors import ConfigurationError
from models.events.project_items import ProjectEpisode
from models.project.saved import SavedProject
from streams.embedded.project_folder import replace_file

if TYPE_CHECKING:
    from jobs.shared.pictures import Drawn

_MEMORY_HEADS = ("type", "content", "from", "until", "importance", "")
_CHUNK_HEADS = ("conversation", "turns", "summary", "topics", "tokens")


@role_command(app, "turntide memory project report shop web -o web.html")
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
    from jobs.memory.project_pictures import WIDTH_PX
    from streams.http import pages

    memories = [
        (
            each.type.value,
            each.content,
            f"{each.valid_from:%Y-%m-%d %H:%M}",
            "" if each.valid_until is None else f"{each.valid_until:%Y-%m-%d %H:%M}",
            f"{each.importance:.2f}",
            "archived" if each.archived else "",
        )
        for each in sorted(saved.memories, key=lambda memory: (memory.type, memory.valid_from, memory.id))
    ]
    chunks = [
        (
            each.conversation_id,
            f"{each.first_turn}-{each.last_turn}",
            each.summary,
            ", ".join(each.key_topics),
            f"{each.token_count} → {each.summary_tokens}",
        )
        for each in sorted(saved.chunks, key=lambda chunk: (chunk.conversation_id, chunk.first_number))
    ]
    names = ("memories", "episodes", "chunks", "conversations", "pending")
    return pages.render(
        "jobs/memory/project_report.html.j2",
        project=project,
        counted={name: len(getattr(saved, name)) for name in names},
        pictures=_pictures(saved),
        width=WIDTH_PX,
        tables=[("Memories", _MEMORY_HEADS, memories), ("Chunks", _CHUNK_HEADS, chunks)],
    )


def _pictures(saved: SavedProject) -> Iterator[Drawn]:
    from jobs.memory.project_pictures import memory_graph, narrative_arc

    by_conversation: defaultdict[str, list[ProjectEpisode]] = defaultdict(list)
    for each in saved.episodes:
        by_conversation[each.conversation_id].append(each)
    turns = {each.id: each.total_turns for each in saved.conversations}
    for name, episodes in sorted(by_conversation.items(), key=lambda each: -len(each[1])):
        last = max([turns.get(name, 1) - 1, *(each.last_turn for each in episodes)])
        yield narrative_arc(episodes, (0, last), title=f"Narrative arc of {name}")
    if any(each.relationships for each in saved.memories):
        yield memory_graph(saved.memories, title="How memories stand to each other")
