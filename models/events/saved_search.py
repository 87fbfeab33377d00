"""A saved search of alerts."""

# ruff: noqa: F403, F405 - the vocabulary of fields

from typing import Annotated, Literal

from msgspec import Struct

from models.events.fields import *
from models.events.session import Harm, Severity

ShownAlerts = Literal["open", "firing", "unlabelled", "all"]
"""Open: not resolved; firing: and not at rest."""


class SavedSearch(Struct, frozen=True, kw_only=True, gc=False):
    """Named filter of an app's alerts. It holds no ids, so an erasure has nothing to delete."""

    title: Annotated[str, about("Title of the saved search.", BEHAVIOUR, min_length=1, max_length=64)]
    show: Annotated[ShownAlerts, about("Filter by the state of the alert.", BEHAVIOUR)] = "open"
    severity: Annotated[Severity | None, about("Severity; null: any.", BEHAVIOUR)] = None
    category: Annotated[Harm | None, about("Kind of harm; null: any.", BEHAVIOUR)] = None
