"""`turntide memory consolidate`: archive what is old and weak in a project, merge episodes, say what that saved."""

from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from typing import Annotated, Any

import typer

from jobs.cli import with_examples
from jobs.shared import role_api as roles
from jobs.shared.output import TOKEN_VARIABLE, OutputFormat, OutputOption, Printer, TokenOption, UrlOption, status_line
from jobs.shared.role_api import EXIT_PENDING, RoleApi
from models.errors import ConfigurationError
from streams.settings import load_settings

_LOOK_EVERY_S = 0.5
_WAIT_S = 120.0
_FIGURES = ("memories_looked_at", "memories_archived", "episodes_merged", "pending_dropped", "tokens_reclaimed")


@with_examples(
    "turntide memory consolidate shop web",
    "turntide memory consolidate shop web --output json",
    "turntide memory consolidate --dir .project-memory",
)
def consolidate(
    app_id: Annotated[str, typer.Argument(metavar="[APP]", help="Id of the app.")] = "",
    project: Annotated[str, typer.Argument(metavar="[PROJECT]", help="Id of the project.")] = "",
    *,
    folder: Annotated[
        Path | None, typer.Option("--dir", help="Use a folder of the four files instead of a role.")
    ] = None,
    url: UrlOption = None,
    token: TokenOption = TOKEN_VARIABLE,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Consolidate a project now; otherwise it happens every `consolidation.every` of the policy.

    `turntide memory project restore` restores the memories that it archives. Exit code 1 if it has not ended.
    """
    if (folder is None) == (not (app_id and project)):
        raise ConfigurationError("give either APP and PROJECT, or a folder with --dir")
    if folder is not None:
        Printer(output).record(_of_folder(folder))
        return
    shown = status_line("consolidating", shown=output is OutputFormat.TABLE)
    with roles.role_api(url, token) as role, shown as say:
        result = _of_role(role, app_id, project, say)
    Printer(output).record(result)
    if not result["done"]:
        Printer(output).message("it is in progress: `turntide memory project show` shows its result")
        raise typer.Exit(EXIT_PENDING)


def _of_role(role: RoleApi, app_id: str, project: str, say: Callable[[str], None]) -> dict[str, Any]:
    """Ask for one and wait for its end; what it came to is what the fold says."""

    def stats() -> dict[str, Any]:
        return role.ask("get_project_standing", app_id=app_id, project_id=project).body

    before, begun = _run(stats()), monotonic()
    answer = role.ask("consolidate_project", app_id=app_id, project_id=project)
    after = stats()
    while answer.pending and _run(after) == before and (waited := monotonic() - begun) < _WAIT_S:
        say(f"{waited:.0f} s")
        sleep(_LOOK_EVERY_S)
        after = stats()
    done = not answer.pending or _run(after) != before
    figures = (after["consolidated"] or {}) if done else {}
    return {
        "done": done,
        **{name: figures.get(name) for name in _FIGURES},
        **{name: after[name] for name in ("memories", "archived", "consolidated_at")},
    }


def _run(stats: dict[str, Any]) -> int:
    """Number of the project's last consolidation."""
    result = stats["consolidated"]
    return 0 if result is None else int(result["run"])


def _of_folder(folder: Path) -> dict[str, Any]:
    from models.project.saved import FILES
    from streams.embedded.project_session import MemorySystem
    from streams.wiring import policy_of

    if not any((folder / name).exists() for name in FILES):
        raise ConfigurationError(f"{folder} has none of {', '.join(FILES)}: give the folder of an export")
    with MemorySystem(folder, folder.resolve().name, policy=policy_of(load_settings()).projects) as memory:
        done = memory.consolidate()
    return {"done": True} | {name: 0 if done is None else getattr(done, name) for name in _FIGURES}
