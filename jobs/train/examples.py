"""What the scorer learns from: labelled dialogues, and contrasts that the project wrote itself.

A **pair** is two messages of one manner: one wants something harmful, the other does not. What a model learns from
their difference is the aim, not the style of a data set. The project's own dialogues are mostly such that only look
risky (fiction, security work, medicine, emotional support …).

A **family** is what comes from one hand: `trylock_attack` and `trylock_benign` are one, since they share their style.
What is left out of a training is left out by families.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from models.errors import ConfigurationError
from models.events import Role

_FOLDER = files("jobs.train")
_SIDE = re.compile(r"_(attack|attacks|benign|harmless|harmful|helpful|safe|unsafe)$")
_CLOSED_LICENCES = re.compile(r"\b(SA|NC|ND|GPL)\b|share.?alike|unknown|proprietary", re.IGNORECASE)


class Said(Struct, frozen=True):
    """A turn of a labelled dialogue."""

    role: Role
    content: str


class Dialogue(Struct, frozen=True):
    """A labelled dialogue, one JSON object a line."""

    session_id: str
    source: str
    label: Literal["escalating", "benign"]
    turns: list[Said]
    licence: str = ""

    @property
    def escalating(self) -> bool:
        """Its label."""
        return self.label == "escalating"

    @property
    def family(self) -> str:
        """Whose hand it is from.

        >>> Dialogue("1", "trylock_attack", "escalating", []).family
        'trylock'
        """
        return _SIDE.sub("", self.source)

    @property
    def own(self) -> bool:
        """Whether the project wrote it."""
        return self.source.startswith("own_")

    @property
    def may_ship(self) -> bool:
        """Whether its licence lets weights that learnt from it be handed on freely (no share-alike, no restriction)."""
        return bool(self.licence) and _CLOSED_LICENCES.search(self.licence) is None

    @property
    def said_by_user(self) -> list[str]:
        """The user's turns."""
        return [said.content for said in self.turns if said.role is Role.USER]


class Pair(Struct, frozen=True):
    """Two messages that differ in their aim."""

    set: str
    category: str
    harmful: str
    benign: str


def read_dialogues(path: Path) -> list[Dialogue]:
    """Labelled dialogues of a file; those in which no user speaks are left out.

    Raises:
        ConfigurationError: It cannot be read, or a line of it; names the line, not its content.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ConfigurationError(f"{path.name}: {error.strerror}. Name a file of labelled dialogues.") from error
    return _dialogues(path.name, lines)


def own_dialogues() -> list[Dialogue]:
    """The project's own."""
    return _dialogues("dialogues.jsonl", _FOLDER.joinpath("dialogues.jsonl").read_bytes().splitlines())


def own_pairs() -> list[Pair]:
    """The project's contrasts."""
    return msgspec.json.Decoder(Pair).decode_lines(_FOLDER.joinpath("pairs.jsonl").read_bytes())


def families(dialogues: Iterable[Dialogue]) -> list[str]:
    """Their families, in order of name."""
    return sorted({dialogue.family for dialogue in dialogues})


def _dialogues(named: str, lines: Sequence[bytes]) -> list[Dialogue]:
    decoder, found = msgspec.json.Decoder(Dialogue), list[Dialogue]()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            dialogue = decoder.decode(line)
        except msgspec.MsgspecError as error:
            raise ConfigurationError(
                f"{named}, line {number} is no labelled dialogue ({error}): session_id, source, label (escalating or "
                "benign), turns with role and content, licence"
            ) from error
        if dialogue.said_by_user:
            found.append(dialogue)
    if not found:
        raise ConfigurationError(f"{named} holds no dialogue in which a user speaks")
    return found
