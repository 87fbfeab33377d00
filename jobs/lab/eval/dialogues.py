"""Real conversations to measure on: from files in any format that `turntide produce` reads, else the demo's."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from jobs.demo.conversations import load_conversations, schedule
from jobs.produce.formats import Filling, InputConversation
from jobs.produce.formats.source import InputSource
from models.errors import ConfigurationError
from models.events import Role, Turn

BEGINS = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
"""Event time of dialogues without times: a fixed one, so that the same files give the same figures."""


class TopicDialogue(Struct, frozen=True):
    """One conversation, told apart from others by where it stands."""

    source: str
    user_id: str
    turns: Sequence[Turn]

    @property
    def user_turns(self) -> int:
        """Turns that are matched to topics."""
        return sum(turn.role is Role.USER for turn in self.turns)


def parse_conditions(conditions: Iterable[str]) -> dict[str, str]:
    """Read `name=value` pairs.

    Raises:
        ConfigurationError: One has no `=`.

    >>> parse_conditions(["label=benign"])
    {'label': 'benign'}
    """
    parsed = {}
    for condition in conditions:
        name, sign, value = condition.partition("=")
        if not sign:
            raise ConfigurationError(f"--where {condition}: write it as name=value, for instance label=benign")
        parsed[name] = value
    return parsed


def read_dialogues(files: Sequence[Path], where: Mapping[str, str]) -> list[TopicDialogue]:
    """Dialogues of all files in order, or the demo's where no file is given.

    Args:
        files: JSON Lines or arrays, each in a format of `jobs.produce.formats`.
        where: Fields that stand beside a dialogue and what they must be; files whose dialogues have none of these
            fields are taken as they are.

    Raises:
        ConfigurationError: A file cannot be read, or there is no dialogue in all of them.
    """
    if not files:
        return _demo()
    found = [dialogue for file in files for dialogue in _read(file, where)]
    if not found:
        raise ConfigurationError("no dialogue is left: look at the files and at --where")
    return found


def _read(file: Path, where: Mapping[str, str]) -> list[TopicDialogue]:
    filling = Filling(source=file.name.partition(".")[0] or "input", now=BEGINS, start=BEGINS, keep_metadata=True)
    try:
        with file.open("rb") as stream:
            items = list(InputSource(stream, filling, end_sessions=False).items)
    except OSError as error:
        raise ConfigurationError(f"cannot read {file}: {error.strerror}") from error
    # A line that cannot be read is left out: `turntide produce` says which.
    talks = [
        [each for each in item.events if isinstance(each, Turn)]
        for item in items
        if isinstance(item, InputConversation)
    ]
    return [TopicDialogue(file.name, turns[0].user_id, turns) for turns in talks if turns and _meets(turns[0], where)]


def _meets(turn: Turn, where: Mapping[str, str]) -> bool:
    beside = turn.metadata or {}
    return all(str(beside[name]) == value for name, value in where.items() if name in beside)


def _demo() -> list[TopicDialogue]:
    talks = load_conversations()
    turns: dict[str, list[Turn]] = {talk.session_id: [] for talk in talks}
    for event in (cue.event(BEGINS) for cue in schedule(talks)):
        if isinstance(event, Turn):
            turns[event.session_id].append(event)
    return [TopicDialogue("demo", talk.user_id, turns[talk.session_id]) for talk in talks]
