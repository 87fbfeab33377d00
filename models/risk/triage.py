"""Rules of what may be said of an alert: the same for commands and over HTTP, before anything is written."""

from typing import Literal, NamedTuple

from models.events import AlertAcknowledged, AlertChanged, AlertStatus, AlertTriaged


class TriageRefusal(NamedTuple):
    """Why something cannot be said of an alert.

    Attributes:
        field: What is wrong of what is said; empty: nothing, the alert is over.
    """

    field: Literal["", "duplicate_of"]
    why: str


def refusal(
    alert: AlertChanged, said: AlertAcknowledged | AlertTriaged, other: AlertChanged | None = None
) -> TriageRefusal | None:
    """Why this cannot be said; None if it can. A note can always be added.

    Args:
        alert: Its latest change.
        said: What is to be said of it.
        other: Latest change of the alert that it is to repeat; None: no such alert is known.
    """
    news = (said.assignee, said.snoozed_until, said.duplicate_of) if isinstance(said, AlertTriaged) else (said,)
    if alert.status is AlertStatus.RESOLVED and any(each is not None for each in news):
        at = f"{alert.timestamp:%Y-%m-%d %H:%M}Z"
        return TriageRefusal("", f"alert {alert.alert_id} is resolved since {at}: only a note or a label can be added")
    of = said.duplicate_of if isinstance(said, AlertTriaged) else ""
    if not of:
        return None
    if other is None or other.app_id != alert.app_id:
        return TriageRefusal("duplicate_of", f"the app has no alert {of}")
    if of == alert.alert_id:
        return TriageRefusal("duplicate_of", f"alert {of} cannot repeat itself")
    return (
        TriageRefusal("duplicate_of", f"alert {of} repeats {other.duplicate_of}: name that")
        if other.duplicate_of
        else None
    )
