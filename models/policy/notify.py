"""Rules of telling people of alerts: the next step by category, and which sink is told. Part of `models.policy`."""

from typing import Annotated, Final, Literal

from msgspec import Meta, field

from models.events import AlertChanged, AlertStatus, Harm, Severity
from models.policy.escalation import QuietHours
from models.policy.stream import PolicySection

_Name = Annotated[str, Meta(min_length=1, max_length=256)]
_Sink = Literal["webhook", "alertmanager", "slack", "pagerduty", "oncall", "teams", "mail"]

RUNBOOKS: Final = {
    Harm.PRIVACY: "Read whether a person is named or followed; if so, tell who is in charge of privacy.",
    Harm.FRAUD: "Look at the user's other sessions; if money or papers are asked for, tell the fraud desk.",
    Harm.WEAPONS: "Read the worst turn first; if means to hurt people are asked for, end the session.",
    Harm.SELF_HARM: "Read the last turns now; if somebody is in danger, follow the crisis plan.",
    Harm.CYBER: "Check whether a system of yours is named; if so, tell security first.",
    Harm.VIOLENCE: "Look for a named person or place; if there is one, follow the threat plan at once.",
    Harm.HATE: "Read the turns in order; what is quoted or reported is no attack. Apply the content rules.",
    Harm.OTHER: "Read the turns named as evidence, then label the alert as true or false.",
}
"""Next step by category, where the policy names none."""


class SinkRoute(PolicySection, frozen=True, kw_only=True):
    """One way to sinks; what is empty holds for all. A sink that no route names is told of everything."""

    sinks: Annotated[tuple[_Sink, ...], Meta(min_length=1)]
    apps: tuple[_Name, ...] = ()
    severities: tuple[Severity, ...] = ()
    categories: tuple[Harm, ...] = ()
    hours: QuietHours | None = None
    """When it is open, on a clock; `severities` of hours have no meaning here."""

    def takes(self, alert: AlertChanged, minute_of_day_utc: int) -> bool:
        """Whether the alert may go this way at this minute."""
        wanted = ((self.apps, alert.app_id), (self.severities, alert.severity), (self.categories, alert.category))
        return all(not some or each in some for some, each in wanted) and (
            self.hours is None or self.hours.cover(minute_of_day_utc)
        )


class NotifyPolicy(PolicySection, frozen=True, kw_only=True):
    """How people are told."""

    runbooks: dict[Harm, Annotated[str, Meta(min_length=1, max_length=1_000)]] = field(default_factory=dict)
    """By category, a sentence or an address; what is not named is as `RUNBOOKS`."""
    routes: tuple[SinkRoute, ...] = ()

    def next_step(self, alert: AlertChanged) -> str:
        """What to do next, by the alert's category; nothing once it is resolved."""
        if alert.status is AlertStatus.RESOLVED:
            return ""
        return self.runbooks.get(alert.category) or RUNBOOKS[alert.category]

    def wants(self, sink: str, alert: AlertChanged, minute_of_day_utc: int) -> bool:
        """Whether a sink is told of an alert at this minute."""
        routes = [route for route in self.routes if sink in route.sinks]
        return not routes or any(route.takes(alert, minute_of_day_utc) for route in routes)
