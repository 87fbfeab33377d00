"""Labelled lines as an extractor read them: what is right, missed and wrong, as figures, rows and tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import asdict

from jobs.shared.output import OutputFormat, Printer


class Misjudged(Struct, frozen=True):
    """A line that was not read as labelled.

    Attributes:
        missed: Types, with their subjects where these are wrong; of facts `category/key=value`, retractions with `-`.
        wrong: Likewise, what was found without a label.
    """

    id: str
    split: str
    kind: str
    text: str
    missed: list[str]
    wrong: list[str]


class Judged(Struct, frozen=True):
    """One labelled line.

    Attributes:
        split: Of the set.
        kind: Why it is in the set.
        right: Type of each label that was found.
        missed: Type of each that was not.
        wrong: Type of each that was found without a label.
        clean: Whether nothing was found; None of a line that states something.
        miss: None where it was read as labelled.
    """

    split: str
    kind: str
    right: list[str]
    missed: list[str]
    wrong: list[str]
    clean: bool | None
    miss: Misjudged | None


class ScoreFigures(Struct, frozen=True):
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


class GroupFigures(ScoreFigures, frozen=True, kw_only=True):
    """Of lines of one kind.

    Attributes:
        messages: How many there are.
        clean: Of those that state nothing, the share in which nothing was found.
    """

    messages: int
    clean: float | None


def figures(judged: Iterable[Judged], of: str | None = None) -> ScoreFigures:
    """Of what has this type; none: of everything."""

    def count(types: Sequence[str]) -> int:
        return len(types) if of is None else types.count(of)

    right = gold = found = 0
    for each in judged:
        right += (hits := count(each.right))
        gold += hits + count(each.missed)
        found += hits + count(each.wrong)
    return figures_of(right, gold=gold, found=found)


def by_split(judged: Iterable[Judged]) -> dict[str, ScoreFigures]:
    """Figures of each split, in the order in which they come."""
    return {name: figures(group) for name, group in _grouped(judged, "split")}


def by_kind(judged: Iterable[Judged]) -> dict[str, GroupFigures]:
    """Figures of each kind, in the order in which they come."""
    return {
        name: GroupFigures(**asdict(figures(group)), messages=len(group), clean=share_clean(group))
        for name, group in _grouped(judged, "kind")
    }


def _grouped(judged: Iterable[Judged], by: str) -> Iterable[tuple[str, list[Judged]]]:
    groups: dict[str, list[Judged]] = {}
    for each in judged:
        groups.setdefault(getattr(each, by), []).append(each)
    return groups.items()


def share_clean(judged: Iterable[Judged]) -> float | None:
    """Of lines that state nothing, the share in which nothing was found."""
    clean = [each.clean for each in judged if each.clean is not None]
    return sum(clean) / len(clean) if clean else None


def print_misread(
    printed: Printer,
    fields: Mapping[str, object],
    tables: Mapping[str, Iterable[Mapping[str, str]]],
    misses: Sequence[Misjudged] | None,
    *,
    kind: str,
    text: str,
) -> None:
    """Print a report whole, its tables, or as CSV the first of them; or with its misses, if not None, for CSV alone.

    `kind` and `text` are what these are called in the labelled set.
    """
    rows = [
        {"id": each.id, kind: each.kind, "message": each.text}
        | {"missed": ", ".join(each.missed), "wrong": ", ".join(each.wrong)}
        for each in misses or ()
    ]
    if printed.form is OutputFormat.JSON:
        named = [{{"kind": kind, "text": text}.get(k, k): v for k, v in asdict(each).items()} for each in misses or ()]
        kept = {name: value for name, value in fields.items() if name != "misses"}
        printed.record(kept if misses is None else {**kept, "misses": named})
    elif printed.form is OutputFormat.CSV:
        printed.rows("", rows if misses is not None else next(iter(tables.values())))
    else:
        for title, table in tables.items():
            printed.rows(title, table)
        if misses is not None:
            printed.rows("Missed or wrong", rows)


def figure_rows(named: Mapping[str, ScoreFigures], first: str = "what") -> Iterator[dict[str, str]]:
    """A row of a table for each; `first` is the heading of the names."""
    for name, found in named.items():
        yield {first: name} | {key: cell(value) for key, value in asdict(found).items()}


def figures_of(right: int, *, gold: int, found: int) -> ScoreFigures:
    """Ratios of counts.

    >>> figures_of(3, gold=4, found=6)
    ScoreFigures(precision=0.5, recall=0.75, f1=0.6, gold=4, found=6)
    """
    return ScoreFigures(
        precision=right / found if found else None,
        recall=right / gold if gold else None,
        f1=2 * right / (gold + found) if gold + found else None,
        gold=gold,
        found=found,
    )


def cell(value: float | None) -> str:
    """A ratio or a count in a table; empty for none.

    >>> cell(0.5), cell(3), cell(None)
    ('0.500', '3', '')
    """
    return "" if value is None else str(value) if isinstance(value, int) else f"{value:.3f}"
