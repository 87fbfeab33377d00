"""Correction of a turn: an event of a session that people write, also long after its end."""

from __future__ import annotations

from typing import Annotated

from models.events.base import Control
from models.events.fields import CONTENT, NAMED, AppId, Operator, TurnNumber, UserId, about


class TurnCorrected(Control, frozen=True, kw_only=True, tag="turn_corrected", gc=False):
    """Somebody puts the text of a turn right, also long after the session's end; the latest correction counts.

    The old text stays in the archive until it is erased. What was made of it before (risk, alerts, summaries, episodes,
    memories of projects and apps) stays as it is.
    """

    app_id: Annotated[AppId, NAMED, about("App of the conversation.")]
    user_id: Annotated[UserId, NAMED, about("User whose turn it is, or who was answered.")]
    turn: Annotated[TurnNumber, about("Turn that is put right.")]
    content: Annotated[str, about("The new text of the message, at most 256 KiB of UTF-8.", CONTENT)]
    by: Annotated[Operator, about("Who put it right.")] = ""
    reason: Annotated[str, about("Why, in their words.", CONTENT)] = ""
