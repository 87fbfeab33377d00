"""The app of a session that a command names by its id alone: a session's id is unique within its app."""

from collections.abc import Collection
from typing import Annotated

import typer

from models.errors import ConfigurationError
from models.events import SessionName, app_meant

SessionAppOption = Annotated[
    str,
    typer.Option(
        "--app", help="App of the session; none: the default app, or else the only one with a session of this id."
    ),
]


def session_meant(session_id: str, app_id: str, apps: Collection[str]) -> SessionName:
    """The session that is meant: of the app that is named, of the default app, or of the only one that has it.

    Args:
        session_id: As it is named.
        app_id: As it is named; empty: it is not.
        apps: Apps that have a session of this id.

    Raises:
        ConfigurationError: No app is named, several have such a session, and none of them is the default app.

    >>> session_meant("chat", "", ["shop"]), session_meant("chat", "", [])
    (SessionName(app_id='shop', session_id='chat'), SessionName(app_id='default', session_id='chat'))
    """
    app = app_id or app_meant(apps)
    if app is None:
        raise ConfigurationError(
            f"apps {', '.join(sorted(apps))} each have a session {session_id}: choose one with --app"
        )
    return SessionName(app, session_id)
