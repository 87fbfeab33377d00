"""`turntide lab train packing`: the dictionary by which topic memory packs messages with zstd, from the project's text.

Of the project's own it learns from what is written to train on, benign talk alone. The demo and the labelled sets are
left out: packing is measured on the first, and nothing learns from the others.
"""

import sys
from itertools import count

from jobs.lab.train.scorer import own_dialogues, own_pairs
from jobs.lab.train.statements import read_written
from models.events import Role
from models.session.topics.packing import ZSTD_LEVEL, MessageEntry, json_bytes

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

DICTIONARY_BYTES = 160 * 1024
_TOGETHER = 8
"""Messages packed at once, about as many as a compaction packs."""
_FIRST_SECOND, _BETWEEN_S = 1_700_000_000.0, 97.317


def packed_texts() -> list[bytes]:
    """JSON as compactions pack it: own dialogues, and single messages one behind the other."""
    seconds = (_FIRST_SECOND + n * _BETWEEN_S for n in count())
    said = [pair.benign for pair in own_pairs()] + [each.said for each in read_written()]
    talks = [[(turn.role, turn.content) for turn in talk.turns] for talk in own_dialogues() if not talk.escalating]
    talks.append([(Role.USER, each) for each in said])
    entries = [[MessageEntry(role, each, round(next(seconds), 3)) for role, each in talk] for talk in talks]
    return [json_bytes(talk[n : n + _TOGETHER]) for talk in entries for n in range(0, len(talk), _TOGETHER)]


def dictionary_of(samples: list[bytes]) -> bytes:
    """A dictionary in zstd's own format, its tables made for the level at which messages are packed."""
    content = zstd.train_dict(samples, DICTIONARY_BYTES)
    return zstd.finalize_dict(content, samples, DICTIONARY_BYTES, ZSTD_LEVEL).dict_content
