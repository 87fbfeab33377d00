"""Findings of a comparison of the archive with itself."""

# ruff: noqa: S608 - statements of this package

from __future__ import annotations

import duckdb
from msgspec import Struct, field

EXAMPLES = 5
"""Differences listed for each claim and kind; counts are exact."""


class ParityDifference(Struct, frozen=True):
    """One of them: ids, numbers of turns and names of fields, never a text."""

    claim: str
    kind: str
    what: str


class Parity(Struct, kw_only=True):
    """The findings.

    Attributes:
        checked: Claim → how many were recomputed.
        counts: `<claim> <kind>` → how many differ.
        examples: The first `EXAMPLES` of each.
        not_checked: `<claim>: <why not>` → how many.
        erased_records: Of `turns.v1`, gone from the archive: what they did to their partition's clock is not known.
    """

    checked: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    examples: list[ParityDifference] = field(default_factory=list)
    not_checked: dict[str, int] = field(default_factory=dict)
    erased_records: int = 0

    @property
    def differences(self) -> int:
        """How many there are."""
        return sum(self.counts.values())

    def add(self, claim: str, checked: int, differing: list[tuple[str, int, list[str]]]) -> None:
        """Note what was found of a claim on one partition."""
        self.checked[claim] = self.checked.get(claim, 0) + checked
        for kind, number, some in differing:
            name = f"{claim} {kind}"
            listed = sum(example.claim == claim and example.kind == kind for example in self.examples)
            self.counts[name] = self.counts.get(name, 0) + number
            self.examples += [ParityDifference(claim, kind, what) for what in some[: EXAMPLES - listed]]

    def leave_out(self, claim: str, number: int, why: str) -> None:
        """Note that some of a claim cannot be told."""
        name = f"{claim}: {why}"
        self.not_checked[name] = self.not_checked.get(name, 0) + number


def checked(con: duckdb.DuckDBPyConnection, found: Parity, claim: str, *, of: str, differing: str) -> None:
    """Count a claim's rows and those that differ."""
    (number,) = con.execute(of).fetchone() or (0,)
    rows = con.execute(
        f"SELECT kind, count(*), min(what, {EXAMPLES}) FROM ({differing}) GROUP BY kind ORDER BY kind"
    ).fetchall()
    found.add(claim, int(number), rows)
