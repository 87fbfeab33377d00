"""`turntide memory project export`, `import` and `report`: a project as four JSON files, and as one HTML page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from jobs.memory.project_asking import project_command, save
from jobs.shared.output import Printer, progress_bar
from jobs.shared.role_api import EXIT_PENDING, CommandContext, RequestTooLargeError, RoleAnswer
from models.errors import ConfigurationError, StoreUnavailable
from models.events.project_items import ProjectEpisode
from models.project.files import read, written
from models.project.saved import FILES, Batch, SavedMessage, SavedProject, batches, with_messages
from streams.api.projects.answers import EXPORT_FORMAT, EXPORT_VERSION, ExportPage
from streams.embedded.project_folder import read_folder, replace_file

if TYPE_CHECKING:
    from jobs.shared.pictures import Drawn

_KINDS = ("memory", "episode", "conversation", "chunk", "pending")
_FIELDS = ("memories", "episodes", "conversations", "chunks", "pending")
_BATCH_ITEMS = 200
_BATCH_BYTES = 48 * 1024
"""Below `http.max_body_bytes` as it is by default; a role that takes less gets smaller pieces."""

DirArgument = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the four files.")]


@project_command("turntide memory project export shop web .project-memory")
def export(role: CommandContext, folder: DirArgument) -> None:
    """Save a project as four readable JSON files. Existing files are replaced, each as a whole."""
    saved, unchanged = exported(role)
    files = written(saved, role.project)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, text in files.items():
            replace_file(folder / name, text)
    except OSError as error:
        raise ConfigurationError(f"cannot write {folder}: {error.strerror}. Give another folder") from error
    printed = role.output
    printed.record(
        {"folder": str(folder), **_counts(saved), "bytes": sum(len(each.encode()) for each in files.values())}
    )
    if not unchanged:
        printed.message("the project changed during the export: repeat it for a consistent state")


@project_command("turntide memory project import shop web .project-memory", name="import")
def bring_back(role: CommandContext, folder: DirArgument) -> None:
    """Import a saved project. Existing items are replaced, so a repeat gives the same result.

    All files are read and checked first; if one is damaged or of a newer format, nothing is imported. The command names
    items beyond the policy's limits; the files still have them. Exit code 1 if the role has not carried out everything.
    """
    texts = read_folder(folder)
    if not texts:
        raise ConfigurationError(f"{folder} has none of {', '.join(FILES)}: give the folder of an export")
    saved = read(texts)
    printed, refused, waiting = role.output, set[str](), 0
    pieces = list(batches(saved, _BATCH_ITEMS, _BATCH_BYTES))
    with progress_bar("Importing pieces") as progress:
        for done, items in enumerate(pieces, start=1):
            for answer in _brought(role, items):
                waiting += answer.pending
                if not answer.pending and answer.body.get("detail"):
                    refused.add(answer.body["detail"])
            progress(done, len(pieces))
    stats = role.ask("get_project_standing").body
    kept = {f"kept_{name}": stats[name] for name in _FIELDS}
    printed.record({"folder": str(folder), **_counts(saved), **kept, "refused": sorted(refused), "waiting": waiting})
    _render(printed, saved, stats, sorted(refused))
    if waiting:
        printed.message("the role has not carried out everything yet: check the role memory, then repeat the import")
        raise typer.Exit(EXIT_PENDING)


def _brought(role: CommandContext, items: Batch) -> Iterator[RoleAnswer]:
    """Send a piece, in halves where it is larger than the role takes at once.

    Raises:
        ConfigurationError: A single item is.
    """
    body = {name: msgspec.to_builtins(each) for name, each in items.items()}
    try:
        yield role.ask("import_project_items", body)
    except RequestTooLargeError as error:
        sequence = [(name, item) for name, each in items.items() for item in each]
        if len(sequence) == 1:
            raise ConfigurationError(f"an item of {sequence[0][0]} is too large for the role: {error}") from error
        for half in (sequence[: len(sequence) // 2], sequence[len(sequence) // 2 :]):
            piece: Batch = {}
            for name, item in half:
                piece.setdefault(name, []).append(item)
            yield from _brought(role, piece)


def exported(role: CommandContext) -> tuple[SavedProject, bool]:
    """Export a project page by page; the flag tells that it did not change meanwhile.

    Raises:
        StoreUnavailable: The role answers in another form.
    """
    items: dict[str, Any] = {name: [] for name in _FIELDS}
    said: dict[str, dict[int, SavedMessage]] = {}
    revisions: set[int] = set()
    for kind in _KINDS:
        after = ""
        while True:
            page = _page(role.ask("export_project_items", kind=kind, after=after, originals=True).body)
            revisions.add(page.revision)
            for name in _FIELDS:
                items[name] += getattr(page, name)
            for each in page.messages:
                message = msgspec.convert(each, SavedMessage, from_attributes=True)
                said.setdefault(each.session_id, {})[each.turn] = message
            after = page.next
            if not after:
                break
    return with_messages(SavedProject(**items), said), len(revisions) == 1


def _page(body: dict[str, Any]) -> ExportPage:
    try:
        page = msgspec.convert(body, ExportPage)
    except msgspec.ValidationError as error:
        raise StoreUnavailable(f"the role exports in a format unknown to this release: {error}") from error
    if (page.format, page.version) != (EXPORT_FORMAT, EXPORT_VERSION):
        raise StoreUnavailable(f"the role exports as {page.format} {page.version}: use the role's release of turntide")
    return page


def _counts(saved: SavedProject) -> dict[str, int]:
    return {name: len(getattr(saved, name)) for name in _FIELDS}


def _render(printed: Printer, saved: SavedProject, stats: dict[str, Any], refused: list[str]) -> None:
    """What of the files is not kept, and what to do."""
    for detail in refused:
        printed.message(f"{detail}; the files still have them")
    for name, most in stats["limits"].items():
        if len(getattr(saved, name, [])) > most:
            printed.message(
                f"{len(getattr(saved, name))} {name} are in the files and the policy keeps {most}: raise it under "
                "`projects` and import again"
            )


_MEMORY_HEADS = ("type", "content", "from", "until", "importance", "")
_CHUNK_HEADS = ("conversation", "turns", "summary", "topics", "tokens")


@project_command("turntide memory project report shop web -o web.html")
def report(
    role: CommandContext,
    *,
    to: Annotated[Path, typer.Option("-o", "--file", help="File to write.")] = Path("project.html"),
) -> None:
    """Draw a project: narrative arcs, the graph of its memories, chunks, and all memories as a table."""
    saved, _ = exported(role)
    page = report_page(role.project, saved)
    save(to, page)
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
