"""A saved search of alerts."""

# ruff: noqa: F403, F405 - the vocabulary of fields

from typing import Annotated, Literal

from msgspec import Struct

from models.events.fields import *
from models.events.session import Harm, Severity

ShownAlerts = Literal["open", "firing", "unlabelled", "all"]
"""Open: not resolved; firing: and not at rest."""


class SavedSearch(Struct, frozen=True, kw_only=True, gc=False):
    """Filters of an app's alerts under a name. No id is among them: an erasure has nothing to look for."""

    title: Annotated[str, about("What the saved search is called.", BEHAVIOUR, min_length=1, max_length=64)]
    show: Annotated[ShownAlerts, about("Which of the alerts.", BEHAVIOUR)] = "open"
    severity: Annotated[Severity | None, about("How urgent; null: any.", BEHAVIOUR)] = None
    category: Annotated[Harm | None, about("Kind of harm; null: any.", BEHAVIOUR)] = None
