"""Rules of the calibrated judgement of a session, and of whom it may wake. Part of `models.policy`."""

from datetime import timedelta
from typing import Annotated

from msgspec import Meta

from models.events import Ratio, Severity
from models.policy.stream import ZERO, PolicySection, require

_Stem = Annotated[str, Meta(min_length=1, max_length=64)]
_MINUTES_A_DAY = 24 * 60


class CombinationModel(PolicySection, frozen=True, kw_only=True):
    """Weights of the calibrated combination. Learnt (`turntide lab train scorer`), not written by hand.

    Whole numbers, in ten-thousandths of log-odds, so that contributions add up exactly.
    """

    name: Annotated[str, Meta(min_length=1, max_length=128)]
    """Version and digest of the file it came from; alerts name it."""
    base: int
    """Log-odds of a session of which nothing is known."""
    weights: dict[str, int]
    """By name of the signal: what it adds at the value 1."""
    holds_reader: bool = False
    """Whether a second reader's signal is bounded like those of the course while no turn is risky (`alone_bound`)."""


class EscalationPolicy(PolicySection, frozen=True, kw_only=True):
    """The calibrated judgement (`models.risk.combination`) over the signals of `models.risk.sequence`."""

    enabled: bool = True
    """False: the source formulas alone make the score."""
    model: CombinationModel | None = None
    """None: that of the scorer's file, filled in where a role starts; without one the source formulas decide."""
    merge_within: timedelta = timedelta(seconds=5)
    """User turns this soon after one another, with no assistant's between, are one message sent in pieces: they are
    weighed as the riskiest of them. Measured from the first piece; zero merges none."""
    kept_turns: Annotated[int, Meta(ge=1, le=64)] = 20
    """Latest turns whose own share of the log-odds is kept; earlier ones are one sum."""
    alone_bound: Ratio = 0.4
    """Probability up to which signals of the course (rows of questions, repeats, refusals: `OF_COURSE` in
    `models.risk.sequence`) carry a session while no turn around is risky by itself (`risk.risky_turn`). Below
    `modes.elevated.enter`: people ask row after row about their router, and support desks decline every day. 1 bounds
    nothing: of the public attacks 35 % alert instead of 20 %, and of the harmless dialogues 1.9 % instead of 1.1 %."""
    around_turns: Annotated[int, Meta(ge=1, le=64)] = 8
    """Weighed turns, a risky one itself included, that are around it: the half-life of a peak."""
    first_evidence_risk: Ratio = 0.2
    """Risk from which a session's first turn is named as evidence: the base rate that the shipped scorer assumes."""
    ask_judge: bool = False
    """Whether a slower judge reads the last turns of an alert; set where one is configured."""
    judge_weight: Annotated[float, Meta(ge=0, le=1)] = 0.5
    """How far a slower judge is believed: share of its log-odds that is added."""
    judge_bound: Annotated[float, Meta(ge=0, le=10)] = 3.0
    """Most log-odds that it can add or take."""
    judge_turn_chars: Annotated[int, Meta(ge=100, le=20_000)] = 4_000
    """Of a turn that a slower judge reads, from its beginning."""

    def __post_init__(self) -> None:
        require(self.merge_within >= ZERO, "merge_within must not be negative")

    @property
    def model_in_force(self) -> CombinationModel | None:
        """The model that judges; None: the source formulas do."""
        return self.model if self.enabled else None


class Allowance(PolicySection, frozen=True, kw_only=True):
    """What an app may be about without waking anybody.

    Without topics the whole app raises no alert; its profiles and scores are kept all the same. With topics, user turns
    that name one of them are not weighed, unless they try to rewrite the assistant's rules.
    """

    app_id: Annotated[str, Meta(max_length=256)] = ""
    """Empty: every app."""
    topics: Annotated[tuple[_Stem, ...], Meta(max_length=64)] = ()
    """Stems of words, as `profile.repeated_topics` names them."""

    def __post_init__(self) -> None:
        require(bool(self.app_id or self.topics), "an allowance needs an app_id or topics: it would allow everything")
        require(all(topic == topic.lower() for topic in self.topics), "topics must be lower-case stems")


class QuietHours(PolicySection, frozen=True, kw_only=True):
    """When an alert that is known already is not repeated. A new one, or one grown worse, goes out at any time."""

    start: Annotated[str, Meta(pattern=r"^([01]\d|2[0-3]):[0-5]\d$")]
    """Of the day, `HH:MM`."""
    end: Annotated[str, Meta(pattern=r"^([01]\d|2[0-3]):[0-5]\d$")]
    """Before `start`: the hours run over midnight."""
    utc_offset_minutes: Annotated[int, Meta(ge=-14 * 60, le=14 * 60)] = 0
    """Of the clock by which they are meant."""
    severities: tuple[Severity, ...] = (Severity.WARNING,)

    def __post_init__(self) -> None:
        require(self.start != self.end, "quiet hours need a start and another end")

    def cover(self, minute_of_day_utc: int) -> bool:
        """Whether they hold at a minute of the day, in UTC."""
        start, end = (int(clock[:2]) * 60 + int(clock[3:]) for clock in (self.start, self.end))
        minute = (minute_of_day_utc + self.utc_offset_minutes) % _MINUTES_A_DAY
        return start <= minute < end if start < end else minute >= start or minute < end


class ModeThreshold(PolicySection, frozen=True, kw_only=True):
    """A mode is entered at one score and left below a lower one (hysteresis)."""

    enter: Ratio
    leave: Ratio

    def __post_init__(self) -> None:
        require(self.leave <= self.enter, "leave must not exceed enter")
