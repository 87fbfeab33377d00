"""Measurements of `turntide lab bench scale`: the same words at each length, all sessions open, no copy."""

import random
from datetime import timedelta

import pytest

from jobs.lab.bench.folds import Prepared
from jobs.lab.bench.scale import POSITIONS, Population, summarise_lengths
from models.partition.log_fold import PARTITION_ENTITY
from models.policy import Policy
from models.session.state import SessionState


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    """Scored and embedded once."""
    return Prepared(Policy())


def test_lines_bring_what_the_stages_before_the_fold_add(prepared: Prepared) -> None:
    """A line keeps words, risk and vector whoever says it; counted on after the last one it begins anew."""
    count = len(prepared.lines)
    said = prepared.line(count + 2, "s-1", 7, 9, timedelta(seconds=5))
    of_user = [line for line in prepared.lines if line.risk is not None]

    assert (said.event.session_id, said.position.offset) == ("s-1", 9)
    assert said.risk == prepared.lines[2].risk
    assert said.vector is prepared.lines[2].vector
    assert of_user
    assert all(line.vector is not None for line in of_user)


def test_medians_of_lengths_are_taken_within_runs() -> None:
    """Ratios pair the same words in the same run: a run that was slow by half changes none."""
    probes = [[1e-6, 2e-6] * 2, [2e-6, 3e-6] * 2, [3e-6, 6e-6] * 2]
    costs = [probes, [[2 * cost for cost in probe] for probe in probes]]
    found = summarise_lengths(costs, [[100, 200, 300, 400]] * 2)

    assert [cost["turn"] for cost in found] == list(POSITIONS)
    assert [round(cost["ratio"], 6) for cost in found] == [1.0, 2.0, 1.0, 2.0]
    assert round(found[0]["us_per_turn"], 6) == 3.0
    assert [cost["state_bytes"] for cost in found] == [100, 200, 300, 400]


def test_a_population_is_open_and_a_probe_folds_its_turns(prepared: Prepared) -> None:
    """All sessions are there with their turns; nothing is skipped as old: each turn is a new one of another."""
    population = Population(Policy(), prepared, 30, 2)

    def states() -> list[SessionState]:
        entities = population.memory.table.entities.items()
        return [SessionState.load(parts) for name, parts in entities if name != PARTITION_ENTITY]

    assert [(state.closed, state.head.last_turn) for state in states()] == [(False, 1)] * 30
    for seed in (1, 2):
        assert population.probe(random.Random(seed)) > 0
        assert sorted(state.offset for state in states()) == list(range(30 * (seed + 1), 30 * (seed + 2)))
