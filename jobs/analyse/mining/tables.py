"""The archive's views as Ibis tables, narrowed to some days, on whatever engine holds them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import date
from typing import TYPE_CHECKING, Literal

import ibis

if TYPE_CHECKING:
    import ibis.expr.types as ir


class Tables:
    """`tables["turns"]`: a view with the column `day`, the day that each row belongs to.

    Args:
        read: A view of the engine by name, with all its rows.
        grouped: By the first day of the row's session, or by the date on which it was received. Views without a session
            are by date in either case.
        days: Only these; None: all.
        cohort: `session_id` and `day` of every session; None: made of the turns.
        without: Dates of receipt whose rows are not read.
    """

    def __init__(
        self,
        read: Callable[[str], ir.Table],
        *,
        grouped: Literal["session", "date"] = "date",
        days: Collection[date] | None = None,
        cohort: ir.Table | None = None,
        without: Collection[date] = (),
    ) -> None:
        self._read = read
        self._grouped = grouped
        self._days = None if days is None else sorted(days)
        self._cohort = cohort
        self._without = sorted(without)

    def __getitem__(self, view: str) -> ir.Table:
        table = self._read(view)
        dated = "date" in table.columns
        if dated and self._without:
            table = table.filter(~table.date.isin(self._without))
        if self._grouped == "session" and "session_id" in table.columns:
            if dated and self._days:
                table = table.filter(table.date >= ibis.literal(self._days[0]))
            return table.inner_join(self._sessions(), "session_id")
        if not dated:
            return table
        table = table.mutate(day=table.date)
        return table if self._days is None else table.filter(table.day.isin(self._days))

    def _sessions(self) -> ir.Table:
        cohort = self._cohort
        if cohort is None:
            turns = self._read("turns")
            cohort = turns.group_by("session_id").agg(day=turns.date.min())
        cohort = cohort.select("session_id", "day")
        return cohort if self._days is None else cohort.filter(cohort.day.isin(self._days))
