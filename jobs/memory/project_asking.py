"""Common parts of `turntide project`'s commands: arguments, asking the role, and printing a command's result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import typer

from jobs.shared.output import Output, OutputFormat
from jobs.shared.role_api import RoleAnswer, path_part, role_api

EXIT_PENDING = 1
AppArgument = Annotated[str, typer.Argument(metavar="APP", help="Id of the app.")]
ProjectArgument = Annotated[str, typer.Argument(metavar="PROJECT", help="Id of the project.")]
MemoryArgument = Annotated[str, typer.Argument(metavar="ID", help="Id of the memory, as `memories` shows it.")]
ConversationOption = Annotated[str, typer.Option("--conversation", help="Only of this one; none: all.")]
OutputOption = Annotated[OutputFormat, typer.Option("--output", help="How the result is printed.")]


def place(project_id: str, end: str) -> str:
    """Path of something of a project."""
    return f"/v1/projects/{path_part(project_id)}/{end}"


class Target(NamedTuple):
    """The project that a command is about, and the role that is asked."""

    app_id: str
    project_id: str
    url: str | None
    token: str

    def ask(
        self, method: str, end: str, *, params: Mapping[str, Any] | None = None, body: Mapping[str, Any] | None = None
    ) -> RoleAnswer:
        """One request about the project.

        Raises:
            ConfigurationError: The role refuses; the message says why and what to do.
            StoreUnavailable: It does not answer, or not as a role does.
        """
        with role_api(self.url, self.token) as role:
            named = {"app_id": self.app_id, **(params or {})}
            return role.ask(method, place(self.project_id, end), params=named, body=body)


def finish(answer: RoleAnswer, output: OutputFormat) -> None:
    """Print what came of a deed; exit code 1 if that is not known yet."""
    Output(output).record(answer.body if output is OutputFormat.JSON else flat(answer.body))
    if answer.pending:
        raise typer.Exit(EXIT_PENDING)


def flat(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of inner objects beside the others, each under the name of where it stands."""
    shown: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, Mapping):
            shown |= {f"{name}.{inner}": each for inner, each in value.items()}
        else:
            shown[name] = value
    return shown


def utc_time(given: str) -> str | None:
    """A time as the role takes it; a day begins at midnight UTC.

    >>> utc_time("2026-01-03"), utc_time("")
    ('2026-01-03T00:00:00Z', None)
    """
    if not given:
        return None
    return given if "T" in given else f"{given}T00:00:00Z"
