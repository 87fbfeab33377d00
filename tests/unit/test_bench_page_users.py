"""The page's sections about users' memory: verdicts and tables from what the commands print."""

from __future__ import annotations

from jobs.lab.bench.page import section_of


def test_facts_are_held_to_the_split_that_nobody_looked_at() -> None:
    """Not to all messages together."""
    found = {"precision": 0.95, "recall": 0.9, "by_split": {"test": {"precision": 0.8, "recall": 0.75}}}
    section = section_of("eval-facts", found)

    assert [(0.8, False), (0.75, True)] == [(held.value, held.reached) for held in section.held]
    assert ("test", "0.8", "0.75", "") == tuple(section.tables[0].rows[1])


def test_each_embedder_has_its_goal() -> None:
    """MiniLM must find more than wordllama."""
    recalls = {kind: {"1-4": {"recall@10": value}} for kind, value in (("turns", 0.71), ("sessions", 0.95))}
    verdicts = {
        name: [held.reached for held in section_of("eval-retrieval", {"embedder": name, **recalls}).held]
        for name in ("wordllama", "minilm")
    }

    assert {"wordllama": [True, True], "minilm": [False, True]} == verdicts


def test_latency_is_held_to_the_limits_that_the_bench_names() -> None:
    """A route's row has the rate beside it."""
    measured = {
        "rate": 200.0,
        "routes": [{"path": "/v1/retrieve", "p99_ms": 20.0, "rate": 200.0, "inside": {"p99_ms": 1.0}}],
    }
    section = section_of("retrieve", measured)

    assert [False, True] == [held.reached for held in section.held]
    assert ["/v1/retrieve"] == [row[0] for row in section.tables[0].rows]
