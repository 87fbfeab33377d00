"""The policy: the sources' defaults, its file, errors that name the field, and what the settings make of it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import pytest
from msgspec import structs

from models.errors import ConfigurationError
from models.events import Harm, Role
from models.policy import Policy, load_policy
from models.policy.escalation import CombinationModel
from models.risk.scorer import RuleScorer
from streams.inference.onnx_embedder import MiniLmEmbedder
from streams.inference.wordllama import WordLlamaEmbedder
from streams.settings import load_settings
from streams.wiring import policy_of, scorer_of, written_policy
from tests.support.fields import assert_fields


@pytest.mark.behaviour("topic-02")
@pytest.mark.parametrize(
    ("name", "embedder"), [("wordllama", WordLlamaEmbedder), ("minilm", MiniLmEmbedder), ("e5", WordLlamaEmbedder)]
)
def test_topics_have_the_threshold_of_the_embedder_that_folds(
    monkeypatch: pytest.MonkeyPatch, name: str, embedder: type[WordLlamaEmbedder | MiniLmEmbedder]
) -> None:
    """The source's 0.7 belongs to other embeddings; nothing else changes by the embedder, and its weights stay away."""

    def refuse(_self: object) -> NoReturn:
        raise AssertionError("a policy needs no weights")

    monkeypatch.setattr(embedder, "__init__", refuse)
    policy = policy_of(load_settings(vectors={"embedder": name}, scorer={"kind": "rules"}))

    assert policy.topics.threshold == embedder.topic_similarity
    assert structs.replace(policy, topics=Policy().topics) == Policy()


@pytest.mark.parametrize(("name", "text"), [("p.toml", "[topics]\nsimilarity_threshold = {}\n"),
                                            ("p.json", '{{"topics": {{"similarity_threshold": {}}}}}')])  # fmt: skip
@pytest.mark.parametrize("threshold", [0.7, 0.0])
def test_the_policy_files_threshold_wins(tmp_path: Path, name: str, text: str, threshold: float) -> None:
    """The source's can be selected, and 0 is a threshold too."""
    file = tmp_path / name
    file.write_text(text.format(threshold))

    assert policy_of(load_settings(policy_file=file)).topics.threshold == threshold


def test_what_neither_scores_nor_folds_needs_no_scorer(tmp_path: Path) -> None:
    """Sinks, runbooks and intake are the policy file's, also where the scorer's file is gone."""
    file = tmp_path / "p.toml"
    file.write_text('[notify.runbooks]\nfraud = "the desk"\n')
    settings = load_settings(policy_file=file, scorer={"file": tmp_path / "gone.scorer"})

    assert "the desk" == written_policy(settings).notify.runbooks[Harm.FRAUD]
    with pytest.raises(ConfigurationError, match=r"gone\.scorer"):
        policy_of(settings)


def test_rules_and_a_policy_that_says_so_judge_by_the_seeds_formulas(tmp_path: Path) -> None:
    """No model is filled in where none may judge, and the one of a policy file is kept."""
    off, own = tmp_path / "off.toml", tmp_path / "own.toml"
    off.write_text("[escalation]\nenabled = false\n")
    own.write_text('[escalation.model]\nname = "own 1"\nbase = -30000\nweights = { level = 25000 }\n')
    rules = load_settings(scorer={"kind": "rules"})

    assert isinstance(scorer_of(rules, WordLlamaEmbedder()), RuleScorer)
    assert (None, None) == (
        policy_of(rules).escalation.model,
        policy_of(load_settings(policy_file=off)).escalation.model,
    )
    assert policy_of(load_settings(policy_file=own)).escalation.model == CombinationModel(
        name="own 1", base=-30_000, weights={"level": 25_000}
    )


@pytest.mark.parametrize(
    ("llm", "asked"),
    [
        ({}, (False, False, False, False)),
        ({"base_url": "http://127.0.0.1:1/v1"}, (True, True, True, True)),
        ({"base_url": "http://127.0.0.1:1/v1", "extract_facts": False}, (False, True, True, True)),
        ({"base_url": "http://127.0.0.1:1/v1", "make_memories": False}, (True, False, True, True)),
        ({"base_url": "http://127.0.0.1:1/v1", "summarise_sessions": False}, (True, True, False, True)),
        ({"base_url": "http://127.0.0.1:1/v1", "summarise_projects": False}, (True, True, True, False)),
        ({"memory_timeout": "PT1H"}, (False, False, False, False)),
    ],
    ids=str,
)
def test_a_language_model_is_asked_where_one_is_configured(llm: dict[str, object], asked: tuple[bool, ...]) -> None:
    """For facts of users, memories of apps, segments of sessions and chunks of projects, unless told otherwise."""
    policy = policy_of(load_settings(llm=llm))
    sessions = policy.memory.ask and policy.topics.ask

    assert (policy.users.facts.ask, policy.apps.ask, sessions, policy.projects.ask) == asked


@pytest.mark.parametrize("within", ["PT5M", "PT6M"])
def test_a_memory_must_not_take_longer_than_it_is_waited_for(within: str) -> None:
    """Every answer would come too late, and nobody would know why there are no memories."""
    with pytest.raises(ConfigurationError, match=r"apps\.answer_within .* llm\.memory_timeout"):
        policy_of(load_settings(llm={"base_url": "http://127.0.0.1:1/v1", "memory_timeout": within}))


def test_file_overrides_single_fields() -> None:
    """What is not named keeps its default: every field is optional, in both formats."""
    text = b"""
    version = "night-shift"
    [session]
    timeout = "PT10M"
    [risk]
    scored_roles = ["user", "tool"]
    [risk.weights]
    level = 0.5
    [intake]
    earliest_time = 2010-01-01T00:00:00Z
    """
    policy = load_policy(text, "toml")

    assert [Policy(), Policy()] == [load_policy(b"", "toml"), load_policy(b"{}", "json")]
    assert ("night-shift", timedelta(minutes=10), (Role.USER, Role.TOOL)) == (
        policy.version,
        policy.session.timeout,
        policy.risk.scored_roles,
    )
    assert_fields(policy.risk.weights, level=0.5, trajectory=0.5)
    assert (datetime(2010, 1, 1, tzinfo=UTC), 10) == (policy.intake.earliest_time, policy.memory.buffer_turns)
