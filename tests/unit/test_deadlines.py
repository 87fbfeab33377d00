"""Deadlines come out by (deadline, name), however they came to be, in bounded memory."""

import random
from datetime import UTC, datetime, timedelta

from models.state.deadlines import Deadlines

START = datetime(2026, 1, 5, 9, 0, 0, 123_457, tzinfo=UTC)


def drained(deadlines: Deadlines) -> list[tuple[datetime, str]]:
    """Everything in order."""
    out = []
    while (first := deadlines.first()) is not None:
        out.append(first)
        deadlines.drop(first[1])
    return out


def test_order_depends_on_the_deadlines_alone() -> None:
    """Names set once, or moved to and fro and dropped before, come out the same, to the microsecond."""
    rng = random.Random(5)
    names = [f"s{n}" for n in range(200)]
    true = {name: START + timedelta(microseconds=rng.randrange(50)) for name in names}
    moved, fresh = Deadlines(), Deadlines()
    for _ in range(5):
        for name in rng.sample(names, 150):
            moved.set(name, START + timedelta(seconds=rng.randrange(-60, 60)))
            moved.first()
        for name in rng.sample(names, 80):
            moved.drop(name)
    for name, deadline in true.items():
        fresh.set(name, deadline)
        moved.set(name, deadline)

    assert drained(moved) == drained(fresh) == sorted((deadline, name) for name, deadline in true.items())


def test_dead_entries_do_not_pile_up() -> None:
    """Names that end early, or whose deadline comes nearer again and again, leave nothing behind."""
    deadlines = Deadlines()
    for n in range(10_000):
        deadlines.set("nearer", START - timedelta(seconds=n))
        deadlines.set(f"s{n}", START)
        deadlines.drop(f"s{n}")

    assert len(deadlines) == 1
    assert len(deadlines._heap) <= 70
    assert deadlines.first() == (START - timedelta(seconds=9_999), "nearer")
