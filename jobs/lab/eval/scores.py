"""Labelled messages as an extractor read them: what is right, missed and wrong, as figures and tables."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from jobs.lab.bench.measuring import Figures

_Label = TypeVar("_Label")
_Found = TypeVar("_Found")
Miss = dict[str, Any]
"""A message that was not read as labelled: id, split, kind and text by their names in the set, `missed` and `wrong`."""


class Judged(Struct, frozen=True):
    """One labelled message.

    Attributes:
        message: Its id, split, kind and text, by the names that these have in the labelled set.
        right: Type of each label that was found.
        absent: Type of each that was not.
        wrong: Type of each that was found without a label.
        missed: What was not read as labelled: types, with subjects where these are wrong, or `category/key=value`.
        unlabelled: Likewise what was found without a label.
        clean: Whether nothing was found; None of a message that states something.
        beside: Right, labelled and found of what is counted apart: subjects or retractions.
    """

    message: dict[str, str]
    right: list[str]
    absent: list[str]
    wrong: list[str]
    missed: list[str]
    unlabelled: list[str]
    clean: bool | None
    beside: tuple[int, int, int]


class ScoreFigures(Struct, frozen=True):
    """Counts of labels and of what was found, with ratios; a ratio of nothing is None."""

    precision: float | None
    recall: float | None
    f1: float | None
    gold: int
    found: int


def paired(
    labels: Iterable[_Label], found: Iterable[_Found], agree: Callable[[_Label, _Found], bool]
) -> tuple[list[tuple[_Label, _Found]], list[_Label], list[_Found]]:
    """Labels with the first that agrees with each, labels without one, and what is left of what was found."""
    left, right, absent = list(found), [], []
    for label in labels:
        match = next((each for each in left if agree(label, each)), None)
        if match is None:
            absent.append(label)
        else:
            left.remove(match)
            right.append((label, match))
    return right, absent, left


def figures(judged: Iterable[Judged], of: str | None = None) -> ScoreFigures:
    """Of what has this type; none: of everything."""

    def count(types: Sequence[str]) -> int:
        return len(types) if of is None else types.count(of)

    counts = [(count(each.right), count(each.absent), count(each.wrong)) for each in judged]
    return figures_of((right, right + absent, right + wrong) for right, absent, wrong in counts)


def of_set(judged: Sequence[Judged], name_of_kind: str) -> Figures:
    """What is said of every labelled set.

    `negatives` are messages that state nothing, `negatives_clean` (of a kind: `clean`) is the share of them in which
    nothing was found; `by_<kind>` has figures of each kind, in the order in which they come.
    """
    kinds = {
        name: {**asdict(figures(group)), "messages": len(group), "clean": share_clean(group)}
        for name, group in _grouped(judged, name_of_kind).items()
    }
    return {
        "by_split": {name: figures(group) for name, group in _grouped(judged, "split").items()},
        "messages": len(judged),
        "negatives": sum(each.clean is not None for each in judged),
        "negatives_clean": share_clean(judged),
        "misses": [
            {**each.message, "missed": each.missed, "wrong": each.unlabelled}
            for each in judged
            if each.missed or each.unlabelled
        ],
        f"by_{name_of_kind}": kinds,
    }


def _grouped(judged: Iterable[Judged], by: str) -> dict[str, list[Judged]]:
    groups: dict[str, list[Judged]] = {}
    for each in judged:
        groups.setdefault(each.message[by], []).append(each)
    return groups


def share_clean(judged: Iterable[Judged]) -> float | None:
    """Of messages that state nothing, the share in which nothing was found."""
    clean = [each.clean for each in judged if each.clean is not None]
    return sum(clean) / len(clean) if clean else None


def rows_of_misses(misses: Iterable[Miss]) -> Iterator[dict[str, str]]:
    """As a table has them: id, kind and message, and what was missed or found wrongly."""
    for miss in misses:
        _, _, kind, text, *_ = miss
        joined = {each: ", ".join(miss[each]) for each in ("missed", "wrong")}
        yield {"id": miss["id"], kind: miss[kind], "message": miss[text], **joined}


def figures_of(counts: Iterable[tuple[int, int, int]]) -> ScoreFigures:
    """Ratios of sums: what is right, labelled and found.

    >>> figures_of([(1, 2, 3), (2, 2, 3)])
    ScoreFigures(precision=0.5, recall=0.75, f1=0.6, gold=4, found=6)
    """
    right, gold, found = map(sum, zip((0, 0, 0), *counts, strict=True))
    return ScoreFigures(
        precision=right / found if found else None,
        recall=right / gold if gold else None,
        f1=2 * right / (gold + found) if gold + found else None,
        gold=gold,
        found=found,
    )


def cell(value: object) -> str:
    """A value in a table: ratios with three digits, empty for none.

    >>> cell(0.5), cell(3), cell(None)
    ('0.500', '3', '')
    """
    return "" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)
