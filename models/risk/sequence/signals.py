"""The sequence signals of one session, all together. Adding one: a class in a file here, a field at the end here.

A signal sees each observed user turn once, in the order of arrival (duplicates and late turns are kept out before), and
keeps a few numbers, so a turn costs the same however long the session is. Its name in `SequenceSignals` is the name
that weights, contributions and alerts use. All of them go through the same named checks in
`tests/unit/test_sequence_rules.py` and `tests/property/test_sequence_signals_property.py`, just by standing here.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Protocol

from msgspec import Struct, field

from models.risk.sequence.framing import Instructions, Refusals, RefusedRephrased
from models.risk.sequence.level import Level
from models.risk.sequence.matter import InformationGathering
from models.risk.sequence.observation import Observation


class Signal(Protocol):
    """One way to see that a conversation escalates; itself the state it needs for that."""

    why: str
    """Why the value is what it is: one clause with numbers and turn numbers, never text; `{0}` is the signal."""

    def observe(self, seen: Observation) -> None:
        """Take one user turn in, in place, in O(1)."""

    @property
    def value(self) -> float:
        """0-1; 0 before anything was observed."""


class SequenceSignals(Struct, array_like=True, gc=False):
    """The signals as state: a short list in msgpack, of bounded size. Fields are only ever added at the end."""

    level: Level = field(default_factory=Level)
    information_gathering: InformationGathering = field(default_factory=InformationGathering)
    refused_rephrased: RefusedRephrased = field(default_factory=RefusedRephrased)
    refusals: Refusals = field(default_factory=Refusals)
    instructions: Instructions = field(default_factory=Instructions)

    def observe(self, seen: Observation) -> None:
        """Show a user turn to every signal, in place."""
        for signal in _all_of(self):
            signal.observe(seen)

    def values(self) -> dict[str, float]:
        """Every signal's value by its name, each 0-1, in the order of the fields."""
        return dict(zip(SIGNAL_NAMES, _values_of(self), strict=True))

    def phrases(self) -> dict[str, str]:
        """Why each value is what it is, by name; of a signal at 0 it says nothing of use."""
        return {name: signal.why.format(signal) for name, signal in zip(SIGNAL_NAMES, _all_of(self), strict=True)}


SIGNAL_NAMES: tuple[str, ...] = SequenceSignals.__struct_fields__
"""Of all signals, in their order."""
OF_COURSE = frozenset({"information_gathering", "refused_rephrased", "refusals"})
"""Signals of how a talk goes, whatever it is about: `escalation.alone_bound` bounds them where nothing is risky."""
_all_of: Callable[[SequenceSignals], tuple[Signal, ...]] = attrgetter(*SIGNAL_NAMES)
_values_of: Callable[[SequenceSignals], tuple[float, ...]] = attrgetter(*(f"{name}.value" for name in SIGNAL_NAMES))
