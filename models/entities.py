"""Entities that memory is folded by: whose an event of `commands.v1`, and what follows from it, is."""

from __future__ import annotations

from models.events.app import ConversationEnded, SpaceCommand, SpaceOutput, space_key
from models.events.erase import UserErasure
from models.events.project import ProjectCommand, ProjectForwarded, ProjectOutput, project_key
from models.events.user import UserEvent, UserOutput, user_key

_Told = ConversationEnded | SpaceOutput
_OfProject = ProjectCommand | ProjectForwarded | ProjectOutput


def owner_of(event: ConversationEnded | SpaceOutput) -> str:
    """The user whose space it is; empty for an app's own, of which `user_id` names who spoke."""
    return event.user_id if event.space == "user" else ""


def entity_key(
    event: UserEvent | UserErasure | UserOutput | SpaceCommand | ConversationEnded | SpaceOutput | _OfProject,
) -> str:
    """Key of the user, space or project that the event changes or tells of: the record key on `commands.v1`."""
    if isinstance(event, _OfProject):
        return project_key(event.app_id, event.project_id)
    if isinstance(event, SpaceCommand):
        return space_key(event.app_id, event.user_id)
    if isinstance(event, _Told):
        return space_key(event.app_id, owner_of(event))
    return user_key(event.app_id, event.user_id)
