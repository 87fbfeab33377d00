"""Scope of a reader, whose memory may be read: every look-up is within one, and there is none that holds everything."""

from __future__ import annotations

from dataclasses import dataclass

from streams.ports import Condition


@dataclass(frozen=True, slots=True)
class Scope:
    """Every field that is not None must hold.

    Attributes:
        app_ids: Any of these apps; None for every app.
        user_id: This user. The same id in two apps is two users: name the app where it matters.
        session_id: This session.

    Raises:
        ValueError: All fields are None, which would be everybody's memory, or no app is allowed at all.
    """

    app_ids: tuple[str, ...] | None = None
    user_id: str | None = None
    session_id: str | None = None

    def __post_init__(self) -> None:
        if self.app_ids is None and self.user_id is None and self.session_id is None:
            raise ValueError("a scope names an app, a user or a session")
        if self.app_ids is not None and not self.app_ids:
            raise ValueError("a scope allows at least one app, or names none")

    def where(self) -> dict[str, Condition]:
        """The store's conditions, the narrowest first.

        >>> Scope(app_ids=("a", "b"), user_id="u").where()
        {'user_id': 'u', 'app_id': ('a', 'b')}
        """
        conditions: dict[str, Condition] = {}
        if self.session_id is not None:
            conditions["session_id"] = self.session_id
        if self.user_id is not None:
            conditions["user_id"] = self.user_id
        if self.app_ids is not None:
            conditions["app_id"] = self.app_ids
        return conditions
