"""Labelled dialogues of made-up families, of the project's own texts."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import structs

from jobs.lab.train.scorer import own_dialogues
from jobs.shared.dialogues import DialogueTurn, LabelledDialogue
from models.events import Role

FAMILIES = {
    "own_crowd": "red_attack",
    "own_ordinary": "red_benign",
    "own_crescendo": "slow_attack",
    "own_support": "slow_benign",
    "own_medicine": "clinic",
}
"""Two families of both labels, and one that is benign alone."""
_EACH = 4


def made_up() -> list[LabelledDialogue]:
    """Four dialogues of each source, freely licensed."""
    found: list[LabelledDialogue] = []
    for own, source in FAMILIES.items():
        of_source = [dialogue for dialogue in own_dialogues() if dialogue.source == own][:_EACH]
        found += [structs.replace(dialogue, source=source, licence="MIT") for dialogue in of_source]
    return found


def spoken(
    session_id: str, source: str, *said: str, escalating: bool = False, role: Role = Role.USER, licence: str = "MIT"
) -> LabelledDialogue:
    """A dialogue in which one side speaks."""
    turns = [DialogueTurn(role, content) for content in said]
    return LabelledDialogue(session_id, source, "escalating" if escalating else "benign", turns, licence)


def retold(dialogues: Iterable[LabelledDialogue], source: str) -> list[LabelledDialogue]:
    """The same with other texts, in the dialogues of one source."""
    return [
        structs.replace(
            each, turns=[DialogueTurn(said.role, f"Which {n} ferries sail?") for n, said in enumerate(each.turns)]
        )
        if each.source == source
        else each
        for each in dialogues
    ]


def as_file(file: Path, dialogues: Sequence[LabelledDialogue]) -> Path:
    """Written as a labelled file."""
    file.write_bytes(msgspec.json.Encoder().encode_lines(dialogues))
    return file
