"""The demo's script, its order and times, and what demos leave on the disk."""

import json
from collections import defaultdict
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from jobs.demo import stage as leftovers
from jobs.demo.conversations import CueAct, load_conversations, load_play, schedule
from jobs.demo.questions import load_questions
from jobs.demo.run import demo_policy
from tests.support.command_line import refused, turntide


def test_sessions_interleave_and_keep_their_order() -> None:
    """The schedule is sorted by event time; within a session times strictly increase."""
    cues = schedule(load_play())
    by_session = defaultdict(list)
    for cue in cues:
        by_session[cue.conversation.session_id].append(cue)

    assert [cue.at for cue in cues] == sorted(cue.at for cue in cues)
    for own in by_session.values():
        assert all(earlier.at < later.at for earlier, later in pairwise(own))
        assert [cue.turn for cue in own if cue.act is CueAct.TURN] == list(range(len(own[0].conversation.turns)))
    assert sum(a.conversation != b.conversation for a, b in pairwise(cues)) > len(cues) / 2
    assert cues[-1].at < timedelta(minutes=30)

    # Four weeks of the project are hurried to the play's length, without a pause: all of it is within the time-out.
    project, last = by_session["tool-library"], schedule(load_conversations())[-1]
    assert abs(project[-1].at - last.at) < timedelta(seconds=1)
    assert project[0].at < timedelta(minutes=1)
    assert max(after.at - before.at for before, after in pairwise(project)) < timedelta(minutes=1)

    # Sessions are on partitions of their own: were the asked user's to overlap, the order of the turns would be luck.
    (name,) = {(question.app_id, question.user_id) for question in load_questions().users}
    times = [[cue.at for cue in own] for own in by_session.values() if own[0].conversation.user_id == name[1]]
    assert len(times) == 3
    assert all(after[0] - before[-1] > timedelta(minutes=1) for before, after in pairwise(times))


def test_a_used_folder_is_refused(tmp_path: Path) -> None:
    """Another run's archive must not be mixed with this one's."""
    (tmp_path / "something").touch()

    assert "is not empty" in refused("demo", "--data-dir", str(tmp_path))


def test_what_demos_left_is_removed_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a folder of somebody else's, nor that of a demo that runs; how much went is said."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left, runs = leftovers.new_folder(), leftovers.new_folder()
    for folder in (left, runs):
        (folder / "policy.toml").write_bytes(demo_policy())
        (folder / "turns.parquet").write_bytes(bytes(10_000))
    other = tmp_path / "turntide"
    other.mkdir()
    (tmp_path / "turntide-demo-link").symlink_to(other)
    (other / "mine").write_text("mine")
    with leftovers.held(runs):
        told = json.loads(turntide("demo", "--clean", "--output", "json").stdout)
    rows = {row["folder"]: row["removed"] for row in told}

    assert rows == {str(left): True, str(runs): False}
    assert all(row["bytes"] >= 10_000 for row in told)
    assert (left.exists(), runs.exists(), (other / "mine").exists()) == (False, True, True)
    assert "is not a folder of a demo" in refused("demo", "--clean", "--data-dir", str(other))
