"""Real conversations to measure on.

Dialogues come from files in any format that `turntide produce` reads, else from the demo. Questions about conversations
and the turns that answer them are LoCoMo's (Maharana et al. 2024), cleaned.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import msgspec
from msgspec import Struct

from jobs.demo.conversations import load_conversations, schedule
from jobs.produce.formats import FORMATS, Documents, Filling, InputConversation, Malformed, conversations
from jobs.produce.formats.source import InputReading, InputSource
from models.errors import ConfigurationError
from models.events import Role, Turn

BEGINS = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
"""Event time of dialogues without times: a fixed one, so that the same files give the same figures."""
FORMAT = "locomo"
Place = tuple[str, int]
"""Session and number of a turn."""
_TURN_ID = re.compile(r"D:?(\d+):(\d+)")
"""As it stands in the evidence, with its slips: `D8:6; D9:17`, `D:11:26`, `D30:05`."""


class LabelledQuestion(Struct, frozen=True):
    """A question about one user's conversations.

    Attributes:
        category: 1 multi-hop, 2 temporal, 3 open-domain, 4 single-hop, 5 adversarial.
        evidence: Turns that answer it, those that the file names and has.
    """

    user_id: str
    text: str
    category: int
    evidence: frozenset[Place]


class Dialogues(Struct, frozen=True):
    """What a file holds: the turns in order of time, and the questions that have evidence.

    Attributes:
        without_evidence: Questions that are left out.
        unknown_evidence: Turns that evidence names and the file does not have; they are left out of it.
    """

    turns: list[Turn]
    questions: list[LabelledQuestion]
    conversations: int
    without_evidence: int
    unknown_evidence: int


class _LocomoQuestion(Struct):
    question: str
    category: int
    evidence: list[str]


class _QuestionSample(Struct):
    sample_id: str
    qa: list[_LocomoQuestion]


_sample = msgspec.json.Decoder(_QuestionSample)


def read_questions(file: Path, *, limit: int | None = None) -> Dialogues:
    """Read conversations and their questions.

    Raises:
        ConfigurationError: It cannot be read, or is no such file.
    """
    try:
        with file.open("rb") as stream:
            documents = list(islice(Documents(stream), limit))
    except OSError as error:
        raise ConfigurationError(f"cannot read {file}: {error.strerror}") from error
    filling = Filling(source=file.stem, now=datetime.now(UTC))
    turns: list[Turn] = []
    for item in conversations(FORMATS[FORMAT], documents, filling, by_time=True):
        if isinstance(item, Malformed):
            raise ConfigurationError(f"{file}, conversation {item.line}: {item.reason}")
        turns += [event for event in item.events if isinstance(event, Turn)]
    places = {_source_of(turn): (turn.session_id, turn.turn) for turn in turns}
    questions: list[LabelledQuestion] = []
    asked = unknown = 0
    for line, document in documents:
        try:
            sample = _sample.decode(document)
        except msgspec.DecodeError as error:
            raise ConfigurationError(f"{file}, conversation {line} has no questions to ask: {error}") from error
        user_id = f"user-{sample.sample_id}"
        for each in sample.qa:
            named = [(sample.sample_id, *place) for place in evidence_places(each.evidence)]
            known = frozenset(places[place] for place in named if place in places)
            asked, unknown = asked + 1, unknown + len(named) - len(known)
            if known:
                questions.append(LabelledQuestion(user_id, each.question, each.category, known))
    return Dialogues(turns, questions, len(documents), asked - len(questions), unknown)


def evidence_places(evidence: list[str]) -> list[tuple[int, int]]:
    """Session and number of each turn that is named, each once.

    >>> evidence_places(["D8:6; D9:17", "D:11:26", "D30:05", "D", "D8:6"])
    [(8, 6), (9, 17), (11, 26), (30, 5)]
    """
    found = [(int(session), int(turn)) for text in evidence for session, turn in _TURN_ID.findall(text)]
    return list(dict.fromkeys(found))


def _source_of(turn: Turn) -> tuple[str, int, int] | None:
    """Sample, and session and number as the file counts them."""
    metadata: Mapping[str, object] = turn.metadata or {}
    named = _TURN_ID.fullmatch(str(metadata.get("dia_id")))
    return (turn.session_id.rpartition("/")[0], int(named[1]), int(named[2])) if named else None


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
            items = list(InputSource(stream, InputReading(filling=filling, end_sessions=False)).items)
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
