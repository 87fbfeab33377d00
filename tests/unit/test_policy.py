"""The policy: the sources' defaults, reading files, and errors that name the field."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from models.errors import ConfigurationError
from models.events import Role
from models.policy import Policy, load_policy
from tests.support.data_files import data_file
from tests.support.fields import assert_fields


def test_empty_file_is_the_default() -> None:
    """Every field is optional, in both formats."""
    assert [Policy(), Policy()] == [load_policy(b"", "toml"), load_policy(b"{}", "json")]


def test_file_overrides_single_fields() -> None:
    """What is not named keeps its default."""
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

    assert ("night-shift", timedelta(minutes=10), (Role.USER, Role.TOOL)) == (
        policy.version,
        policy.session.timeout,
        policy.risk.scored_roles,
    )
    assert_fields(policy.risk.weights, level=0.5, trajectory=0.5)
    assert (datetime(2010, 1, 1, tzinfo=UTC), 10) == (policy.intake.earliest_time, policy.memory.buffer_turns)


@pytest.mark.parametrize(("text", "named"), data_file("policies")["refused"])
def test_errors_name_the_field(text: str, named: str) -> None:
    """A wrong file is refused with what is wrong and where."""
    with pytest.raises(ConfigurationError) as caught:
        load_policy(text.encode(), "toml")

    assert named in str(caught.value)
