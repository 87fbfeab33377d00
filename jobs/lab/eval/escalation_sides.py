"""Judges of labelled dialogues: the configured scorer, or one that was trained without the dialogue."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import NamedTuple

from jobs.shared.dialogues import LabelledDialogue, family_of
from models.errors import ConfigurationError


class LeaveOut(StrEnum):
    """What a dialogue's judge must not have seen; what `--leave-out` takes."""

    AUTO = "auto"
    FAMILY = "family"
    SOURCE = "source"
    NOTHING = "nothing"


class Sides(NamedTuple):
    """Dialogues by who judges them.

    Attributes:
        left_out: By models that are trained on these, each without what it judges.
        as_it_is: By the configured scorer.
        without_user: By nobody: no user speaks, so there is nothing to score.
    """

    left_out: list[LabelledDialogue]
    as_it_is: list[LabelledDialogue]
    without_user: list[LabelledDialogue]


def sides_of(dialogues: Sequence[LabelledDialogue], leave_out: LeaveOut, known_sources: Collection[str]) -> Sides:
    """Who judges which dialogue.

    With `AUTO`, those of families that the configured scorer was trained on are judged by models without them, also
    where their own source is new. Where that is one family, its model is trained on the project's own texts alone.

    Args:
        dialogues: Labelled.
        leave_out: As asked for.
        known_sources: What the configured scorer was trained on.

    Raises:
        ConfigurationError: No user speaks in any of them.
    """
    known = {family_of(source) for source in known_sources}
    sides = Sides([], [], [])
    for dialogue in dialogues:
        seen = leave_out is not LeaveOut.AUTO or dialogue.family in known
        if not dialogue.said_by_user:
            sides.without_user.append(dialogue)
        elif seen and leave_out is not LeaveOut.NOTHING:
            sides.left_out.append(dialogue)
        else:
            sides.as_it_is.append(dialogue)
    if len(sides.without_user) == len(dialogues):
        raise ConfigurationError("there is no dialogue in which a user speaks: nothing can be scored")
    return sides


def require_two(dialogues: Sequence[LabelledDialogue], *, by_family: bool, instead: str) -> None:
    """Say that leaving out needs something that is left.

    Raises:
        ConfigurationError: There is one family alone, or one source; `instead` says what to do.
    """
    groups = {each.family if by_family else each.source for each in dialogues}
    if len(groups) == 1:
        kind = "family" if by_family else "source"
        raise ConfigurationError(f"all dialogues are of one {kind}, {groups.pop()}: left out, none is left. {instead}")
