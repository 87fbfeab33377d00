"""Message trees of OpenAssistant (OASST1, OASST2), as the released `.trees.jsonl` files have them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec
from msgspec import Struct

from jobs.produce.formats.filling import FileMessage, Filling
from models.events import Identifier, Turn

RULE = (
    "a message tree a line; every path from the prompt to a leaf is one session <tree id>/<leaf id>, so turns near the "
    "root occur in several; times and the prompt's user are taken where given"
)


class _OasstMessage(Struct):
    message_id: str
    text: str
    role: str
    replies: list[_OasstMessage] = []
    user_id: Identifier | None = None
    created_date: datetime | None = None


class _Tree(Struct):
    message_tree_id: str
    prompt: _OasstMessage


_decoder = msgspec.json.Decoder(_Tree)


def read(document: bytes, position: int, filling: Filling) -> list[list[Turn]]:
    """The tree's paths, depth first.

    Raises:
        msgspec.DecodeError: It is no such object.
        InvalidRecord: A role is unknown, or a message too long.
    """
    _ = position
    tree = _decoder.decode(document)
    return [
        filling.turns(
            f"{tree.message_tree_id}/{path[-1].message_id}",
            [FileMessage(role=m.role, content=m.text, timestamp=m.created_date) for m in path],
            user_id=tree.prompt.user_id,
        )
        for path in _paths(tree.prompt)
    ]


def _paths(root: _OasstMessage) -> Iterator[list[_OasstMessage]]:
    # A stack, no recursion: a file must not be able to exhaust ours.
    waiting = [[root]]
    while waiting:
        path = waiting.pop()
        replies = path[-1].replies
        if not replies:
            yield path
        waiting.extend([*path, reply] for reply in reversed(replies))
