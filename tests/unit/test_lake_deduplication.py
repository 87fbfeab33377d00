"""Repeats that are written down in a real archive: the one after the first stands once the first has gone."""

# ruff: noqa: S608 - tables are constants

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from models.erasure import ErasureSubject
from models.policy.archive import RetentionPolicy
from streams.archive.catalog import reading
from streams.archive.erasing import erase
from streams.archive.maintenance import maintain
from streams.archive.retention import retain
from streams.archive.schema import RAW
from streams.archive.verify import verify
from streams.archive.writer import LakeWriter
from tests.support.lake_records import NOW, PREFIX, buffer_of, paths, turn

LATER = NOW + timedelta(days=30)
_MINE, _THEIRS = turn(0, content="mine"), replace(turn(0, content="theirs"), user_id="u-2")
_FIRST_USER = ErasureSubject("user", "support", "u-1")


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[LakeWriter]:
    """A turn of one user, a month later the same one of another user and a third time, another turn; all settled."""
    writer = LakeWriter(paths(tmp_path))
    _land(writer, [_MINE], at=NOW, first=0)
    _land(writer, [_THEIRS, replace(_THEIRS, content="again"), replace(_THEIRS, turn=1)], at=LATER, first=1)
    maintain(writer, now=LATER, keep_replaced=timedelta(0))
    yield writer
    writer.close()


def _land(writer: LakeWriter, turns: list[object], *, at: datetime, first: int) -> None:
    writer.land(buffer_of(turns, first=first, expected=first or None, received=at), now=at)


def _shown(writer: LakeWriter) -> list[tuple[int, str]]:
    with reading(writer.paths) as con:
        return con.execute("SELECT turn, content FROM turns ORDER BY ALL").fetchall()


def _written_down(writer: LakeWriter) -> list[tuple[int]]:
    return writer.con.execute(f"SELECT kafka_offset FROM {RAW}.repeats WHERE rule = 'turns' ORDER BY ALL").fetchall()


@pytest.mark.parametrize(
    "go",
    [
        lambda writer: erase(writer, _FIRST_USER, now=LATER),
        lambda writer: retain(writer, RetentionPolicy(identified_days=15), now=LATER, policy_version="1"),
    ],
    ids=["erased", "too old"],
)
def test_a_first_that_goes_shows_its_repeat(writer: LakeWriter, go: Callable[[LakeWriter], object]) -> None:
    """One of the two, and no byte of the first one's words."""
    go(writer)

    assert [(0, "theirs"), (1, "theirs")] == _shown(writer)
    assert [(2,)] == _written_down(writer)
    assert [] == verify(writer.con, prefix=PREFIX, now=LATER).findings


def test_what_lands_and_is_settled_afterwards_repeats_the_one_that_stands(writer: LakeWriter) -> None:
    """Marks and what is written down go together: the last repeat is left out before and after it is settled."""
    erase(writer, _FIRST_USER, now=LATER)
    _land(writer, [replace(_THEIRS, content="late")], at=LATER, first=4)
    behind_the_marks = _shown(writer)
    maintain(writer, now=LATER, keep_replaced=timedelta(0))

    assert [(0, "theirs"), (1, "theirs")] == behind_the_marks == _shown(writer)
    assert [(2,), (4,)] == _written_down(writer)


def test_an_erased_repeat_leaves_the_first(writer: LakeWriter) -> None:
    """Nothing of the other user is left, nor a note of it."""
    erase(writer, ErasureSubject("user", "support", "u-2"), now=LATER)

    assert [(0, "mine")] == _shown(writer)
    assert [] == _written_down(writer)
