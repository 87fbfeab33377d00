"""Precision, recall and F1 of what a judgement finds, and how tables show them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import asdict

_Each = TypeVar("_Each")


class Figures(Struct, frozen=True):
    """Counts and ratios; a ratio of nothing is None.

    Attributes:
        precision: Of what was found, how much is right.
        recall: Of what should be found, how much was.
        f1: Their harmonic mean.
        gold: What should be found.
        found: What was found.
    """

    precision: float | None
    recall: float | None
    f1: float | None
    gold: int
    found: int


class GroupFigures(Figures, frozen=True, kw_only=True):
    """Of messages of one kind.

    Attributes:
        messages: How many there are.
        clean: Of those that state nothing, the share in which nothing was found.
    """

    messages: int
    clean: float | None


def group_figures(figures: Figures, *, messages: int, clean: float | None) -> GroupFigures:
    """Figures with how many messages they are of."""
    return GroupFigures(**asdict(figures), messages=messages, clean=clean)


def group_rows(groups: Mapping[str, GroupFigures], by: str) -> Iterator[dict[str, str]]:
    """A row of a table for each group; `by` names its first column."""
    for name, figures in groups.items():
        yield {by: name, "messages": str(figures.messages)} | cells(figures) | {"clean": cell(figures.clean)}


def grouped(every: Iterable[_Each], by: Callable[[_Each], str]) -> dict[str, list[_Each]]:
    """By a name, in the order in which names come."""
    groups: dict[str, list[_Each]] = {}
    for each in every:
        groups.setdefault(by(each), []).append(each)
    return groups


def figures_of(right: int, *, gold: int, found: int) -> Figures:
    """Ratios of counts.

    >>> figures_of(3, gold=4, found=6)
    Figures(precision=0.5, recall=0.75, f1=0.6, gold=4, found=6)
    """
    return Figures(
        precision=right / found if found else None,
        recall=right / gold if gold else None,
        f1=2 * right / (gold + found) if gold + found else None,
        gold=gold,
        found=found,
    )


def cells(figures: Figures) -> dict[str, str]:
    """Of a row of a table."""
    return {
        "precision": cell(figures.precision),
        "recall": cell(figures.recall),
        "f1": cell(figures.f1),
        "gold": str(figures.gold),
        "found": str(figures.found),
    }


def cell(ratio: float | None) -> str:
    """A ratio in a table; empty for none.

    >>> cell(0.5), cell(None)
    ('0.500', '')
    """
    return "" if ratio is None else f"{ratio:.3f}"
