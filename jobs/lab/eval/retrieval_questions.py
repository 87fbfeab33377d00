"""Questions about conversations and the turns that answer them: LoCoMo's (Maharana et al. 2024), cleaned."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import msgspec
from msgspec import Struct

from jobs.produce.formats import FORMATS, Documents, Filling, Malformed, conversations
from models.errors import ConfigurationError
from models.events import Turn

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


def read_dialogues(file: Path, *, limit: int | None = None) -> Dialogues:
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
