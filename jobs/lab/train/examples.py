"""Training examples that the project wrote itself: contrasts, and dialogues that mostly only look risky.

A **pair** is two messages of one manner: one wants something harmful, the other does not. What a model learns from
their difference is the aim, not the style of a data set.
"""

from __future__ import annotations

from importlib.resources import files

import msgspec
from msgspec import Struct

from jobs.shared.dialogues import LabelledDialogue, read_labelled

_FOLDER = files("jobs.lab.train")


class MessagePair(Struct, frozen=True):
    """Two messages that differ in their aim."""

    set: str
    category: str
    harmful: str
    benign: str


def own_dialogues() -> list[LabelledDialogue]:
    """The project's own."""
    return read_labelled(_FOLDER.joinpath("dialogues.jsonl"), LabelledDialogue, "dialogue", name="session_id")


def own_pairs() -> list[MessagePair]:
    """The project's contrasts."""
    return msgspec.json.Decoder(MessagePair).decode_lines(_FOLDER.joinpath("pairs.jsonl").read_bytes())
