"""Project of a request, the fields that every command to it has, and its outcome.

A project id may hold slashes; routes are told apart by their last words, those that end in a fixed word first.
"""

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import quote
from uuid import uuid4

from msgspec import Meta, Struct

from models.events.fields import Identifier, printable
from models.events.project import DeedResult
from streams.api.projects.messages import PendingDeed
from streams.http.problems import Problem, invalid_field, not_found
from streams.http.route import Accepted, Group
from streams.http.security import caller, require_role
from streams.settings.http import TokenRole

PROJECTS = Group(
    "projects",
    "Memory of projects: typed, related, valid in time; commands for admins.",
    prefix="/v1/projects/{project_id:path}",
)
DONE_OUTCOMES = frozenset({"done", "unchanged"})
_REFUSED = {
    "not_found": (HTTPStatus.NOT_FOUND, "not_found", "no such item: it may have been merged, displaced or erased"),
    "too_many": (HTTPStatus.CONFLICT, "too_many", "there are as many as the policy allows"),
}


ItemName = Annotated[str, printable(1, 64)]
"""What a request calls an item by: any name, for which there may be none."""


class OfProject(Struct, frozen=True, kw_only=True):
    """A request about a project."""

    project_id: Annotated[Identifier, Meta(description="URL-encoded; any character.")]
    app_id: Annotated[Identifier, Meta(description="The project's app; none: the token's only one.")] | None = None


class AskedProject:
    """The project that a request is about.

    Raises:
        Problem: 403 another tenant's app; 422 no app is named.
    """

    def __init__(self, asked: OfProject) -> None:
        found, project_id = caller().app_of(asked.app_id), asked.project_id
        if found is None:
            raise invalid_field("app_id", "name the project's app: the same project id in two apps is two projects")
        self.app_id, self.project_id = found, project_id

    def command(self, now: datetime) -> dict[str, Any]:
        """What every command to the project begins with.

        Raises:
            Problem: 403, no admin.
        """
        return {
            "app_id": self.app_id,
            "project_id": self.project_id,
            "timestamp": now,
            "request_id": uuid4().hex,
            "by": require_role(TokenRole.ADMIN).name,
        }

    def pending(self, request_id: str) -> Accepted[PendingDeed]:
        """It is written, and will be seen; and where to look."""
        result = PendingDeed(
            success=False,
            pending=True,
            request_id=request_id,
            hint="the command is in the log and will be carried out, once: look again at the project; is the role "
            "memory running, and the role index?",
        )
        place = f"/v1/projects/{quote(self.project_id, safe='')}/standing?app_id={quote(self.app_id, safe='')}"
        return Accepted(result, {"Location": place})


def require_done(result: DeedResult) -> DeedResult:
    """What came of a command.

    Raises:
        Problem: 404, 409 or 422: the fold refused it; the detail says why and what to do.
    """
    if result.outcome in DONE_OUTCOMES:
        return result
    if result.outcome in _REFUSED:
        status, code, detail = _REFUSED[result.outcome]
        raise Problem(status, code, result.detail or detail)
    raise invalid_field("", result.detail or "longer than the policy allows (`projects.long_term.content_chars`)")


def no_such(what: str, where: str) -> Problem:
    """404, and where those stand that there are."""
    return not_found(f"no such {what}: GET /v1/projects/{{id}}/{where} lists them")
