"""Versions of the rules on disk: kept once, never overwritten, found again; and which folded a partition from where."""

import errno
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from models.errors import ConfigurationError, StoreUnavailable
from models.policy import Policy
from models.policy.digest import policy_digest
from models.policy.escalation import CombinationModel, EscalationPolicy
from streams.settings import Settings, load_settings
from streams.state import policy_versions as versions
from streams.state.policy_versions import Version

POLICY = Policy(
    version="kept",
    escalation=EscalationPolicy(
        model=CombinationModel(name="m-1", base=-31_234, weights={"level": 20_001, "refusals": 7})
    ),
)
OLD, NEW = Version("old", "rules", "e"), Version("new", "rules", "e")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Own data directory."""
    return load_settings(data_dir=tmp_path)


def firsts(settings: Settings, partition: int = 0) -> list[tuple[int, str]]:
    """From which offset on which policy folded a partition."""
    return [(stretch.first_offset, stretch.version.policy) for stretch in versions.history(settings, partition)]


def test_a_policy_comes_back_as_it_was(settings: Settings) -> None:
    """With its weights, under the digest that alerts name; kept again it stays."""
    digests = {versions.keep(settings, POLICY, b"weights", "scorer/1 a") for _ in range(2)}

    assert {policy_digest(POLICY)} == digests
    assert POLICY == versions.kept_policy(settings, policy_digest(POLICY))
    assert policy_digest(POLICY) == policy_digest(versions.kept_policy(settings, policy_digest(POLICY)))
    assert b"weights" == versions.kept_scorer_file(settings, "scorer/1 a")
    assert 2 == len(list((settings.data_dir / "versions").iterdir()))


def test_other_content_is_not_written_over_what_is_kept(settings: Settings) -> None:
    """A scorer that kept its name, and a policy's file that was damaged; of what is missing the file is named."""
    digest = versions.keep(settings, POLICY, b"one", "scorer")
    with pytest.raises(ConfigurationError, match=r"scorer\.bin has other content"):
        versions.keep(settings, POLICY, b"two", "scorer")
    path = versions.policy_path(settings, digest)
    path.write_bytes(b"{}")

    with pytest.raises(ConfigurationError, match="has other content"):
        versions.keep(settings, POLICY, None, "scorer")
    with pytest.raises(ConfigurationError, match="damaged"):
        versions.kept_policy(settings, digest)
    with pytest.raises(ConfigurationError, match=r"policy-abc\.json is missing.*copy the file"):
        versions.kept_policy(settings, "abc")
    with pytest.raises(ConfigurationError, match="scorer s is not stored here"):
        versions.kept_scorer_file(settings, "s")
    assert (b"one", b"{}") == (versions.kept_scorer_file(settings, "scorer"), path.read_bytes())


def test_history_has_a_stretch_for_each_change_only(settings: Settings) -> None:
    """A role that starts again with the same rules changes nothing; partitions and prefixes are told apart."""
    other = settings.model_copy(update={"topic_prefix": "other"})
    versions.note(settings, {0: 0, 1: 5}, OLD)
    versions.note(settings, {0: 40}, OLD)
    versions.note(settings, {0: 70, 1: 5}, NEW)
    versions.note(other, {0: 3}, NEW)

    assert [(0, "old"), (70, "new")] == firsts(settings)
    assert [(5, "new")] == firsts(settings, 1)
    assert [(3, "new")] == firsts(other)
    assert [] == firsts(other, 1)


@pytest.mark.parametrize(
    ("first", "version", "expected"),
    [
        (50, NEW, [(0, "old"), (50, "new")]),
        (50, OLD, [(0, "old")]),
        (0, NEW, [(0, "new")]),
        (80, NEW, [(0, "old"), (70, "new")]),
        (80, OLD, [(0, "old"), (70, "new"), (80, "old")]),
    ],
)
def test_what_is_folded_anew_replaces_what_was(
    settings: Settings, first: int, version: Version, expected: list[tuple[int, str]]
) -> None:
    """After a loss of state or a crash a role begins below where another version had come to."""
    versions.note(settings, {0: 0}, OLD)
    versions.note(settings, {0: 70}, NEW)
    versions.note(settings, {0: first}, version)

    assert expected == firsts(settings)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_histories_of_several_workers_are_put_together_in_any_order(settings: Settings, order: tuple[int, int]) -> None:
    """Each has its own folder. The first one got the partition back: for itself that was no news."""
    workers = [settings.model_copy(update={"data_dir": settings.data_dir / name}) for name in ("one", "two")]
    at = datetime(2026, 1, 1, tzinfo=UTC)
    for hour, worker, first, version in ((0, 0, 0, OLD), (1, 1, 50, NEW), (2, 0, 80, OLD), (3, 1, 70, NEW)):
        versions.note(workers[worker], {0: first}, version, now=at + timedelta(hours=hour))
        put_together(settings, [workers[n] for n in order])
        if hour == 2:
            assert [(0, "old"), (50, "new"), (80, "old")] == firsts(settings)

    assert [(0, "old"), (50, "new")] == firsts(settings)


@pytest.mark.fault("F13")
def test_a_clock_that_goes_back_changes_no_order(settings: Settings) -> None:
    """Assignments of one worker follow each other as they stand in its file, whatever time it thought it was."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    for hour, first, version in ((0, 0, OLD), (1, 50, NEW), (0.5, 80, OLD), (0.6, 90, NEW)):
        versions.note(settings, {0: first}, version, now=at + timedelta(hours=hour))

    assert [(0, "old"), (50, "new"), (80, "old"), (90, "new")] == firsts(settings)


@pytest.mark.fault("F10")
def test_what_could_not_be_kept_leaves_nothing(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk: a message with the place, no drafts that fill it further, and kept once there is room."""

    def full(_file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    for _start in range(3):
        with pytest.raises(StoreUnavailable, match=r"policy-\w+\.json cannot be written: No space left"):
            versions.keep(settings, POLICY, None, "scorer")
    assert [] == list((settings.data_dir / "versions").iterdir())
    monkeypatch.undo()

    assert policy_digest(POLICY) == versions.keep(settings, POLICY, None, "scorer")


def put_together(settings: Settings, workers: Sequence[Settings]) -> None:
    """Append the workers' histories to one another."""
    path = settings.data_dir / "versions" / "history.jsonl"
    path.parent.mkdir(exist_ok=True)
    of_workers = [worker.data_dir / "versions" / "history.jsonl" for worker in workers]
    path.write_bytes(b"".join(each.read_bytes() for each in of_workers if each.exists()))


def test_a_line_cut_short_spoils_none_after_it(settings: Settings) -> None:
    """The writer was killed in the middle of it."""
    versions.note(settings, {0: 0}, OLD)
    path = settings.data_dir / "versions" / "history.jsonl"
    path.write_bytes(path.read_bytes() + b'\n{"prefix":"turn')
    versions.note(settings, {0: 9}, NEW)

    assert [(0, "old"), (9, "new")] == firsts(settings)
