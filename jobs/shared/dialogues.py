"""Labelled dialogues: conversations of which somebody knows whether they escalate, as JSON Lines.

One object a line: `session_id`, `source`, `label` (`escalating` or `benign`), `turns` (each with `role`, `content` and,
if it has one, `turn`, its number), and `licence`; other fields are passed over.

The fold of sessions sees them as turns a minute apart, for nobody says when they were said.

A **family** is what comes from one hand: `trylock_attack` and `trylock_benign` are one, since they share their style,
and so are `x_rest` or `x_wrapped` with `x`.
What is left out of a training is left out by families.
"""

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from importlib.resources.abc import Traversable
from itertools import count
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct, structs

from models.errors import ConfigurationError
from models.events import Identifier, OutputEvent, Position, Role, Turn, TurnNumber
from models.policy import Policy
from models.policy.app import AppPolicy
from models.policy.project import ProjectPolicy
from models.policy.topic import TopicPolicy
from models.policy.user import UserPolicy
from models.session.fold import SessionState, fold
from models.wire.arrival import SessionInput
from streams.ports import Vectors

BETWEEN_TURNS = timedelta(minutes=1)
"""Labelled dialogues have no times; this far apart no two turns are pieces of one message."""
_START = datetime(2026, 1, 1, tzinfo=UTC)
_SIDE = re.compile(r"(_rest|_wrapped)?(_(attack|attacks|benign|harmless|harmful|helpful|safe|unsafe))?$")
_FREE_LICENCES = re.compile(
    r"(MIT|Apache-2\.0(\+RUA)?|BSD-[23]-Clause|ISC|CC0-1\.0|CC[ -]BY[ -]\d\.\d)(, by way of .*)?"
)
"""By their SPDX names, and by whose way. `+RUA` are terms that ask for defensive use, which this is; the
model card says so."""
_QUOTED_VALUE = re.compile(r"Invalid enum value .* - at ", re.DOTALL)

_Line = TypeVar("_Line", bound=Struct)


class DialogueTurn(Struct, frozen=True, gc=False):
    """A turn of a labelled dialogue."""

    role: Role
    content: str
    turn: TurnNumber | None = None


class LabelledDialogue(Struct, frozen=True):
    """A labelled dialogue."""

    session_id: Identifier
    source: Identifier
    label: Literal["escalating", "benign"]
    turns: Annotated[list[DialogueTurn], Meta(min_length=1)]
    licence: str = ""
    kind: str = ""
    """What it is about, in words."""

    @property
    def escalating(self) -> bool:
        """True if the label is `escalating`."""
        return self.label == "escalating"

    @property
    def family(self) -> str:
        """Family of its source.

        >>> LabelledDialogue("1", "trylock_attack", "escalating", []).family
        'trylock'
        """
        return family_of(self.source)

    @property
    def own(self) -> bool:
        """True if the project wrote it."""
        return self.source.startswith("own_")

    @property
    def may_ship(self) -> bool:
        """True if its licence is known to let weights that learnt from it be distributed.

        What is not in the list of these does not: share-alike, several licences at once, or one misspelt.
        """
        return _FREE_LICENCES.fullmatch(self.licence) is not None

    @property
    def said_by_user(self) -> list[str]:
        """The user's turns."""
        return [said.content for said in self.turns if said.role is Role.USER]

    @property
    def numbers(self) -> list[int]:
        """Numbers of its turns: the file's own where every turn has one, else counted from 0.

        >>> unnumbered, seventh = DialogueTurn(Role.USER, "a"), DialogueTurn(Role.USER, "b", 7)
        >>> [LabelledDialogue("1", "s", "benign", turns).numbers for turns in ([seventh], [unnumbered, seventh])]
        [[7], [0, 1]]
        """
        found = [said.turn for said in self.turns if said.turn is not None]
        return found if len(found) == len(self.turns) else list(range(len(self.turns)))


def family_of(source: str) -> str:
    """The family of a source of this name.

    >>> family_of("hh_harmless"), family_of("hh_safe"), family_of("trec_cast")
    ('hh', 'hh', 'trec_cast')
    """
    return _SIDE.sub("", source)


def families(dialogues: Iterable[LabelledDialogue]) -> list[str]:
    """Their families, in order of name."""
    return sorted({dialogue.family for dialogue in dialogues})


def read_dialogues(file: Path) -> list[LabelledDialogue]:
    """Read a labelled file, in its order; errors as of `read_labelled`, and one where it holds no dialogue."""
    found = read_labelled(file, LabelledDialogue, "dialogue", name="session_id")
    if not found:
        raise ConfigurationError(f"{file} has no dialogue: it needs one JSON object a line")
    return found


def read_labelled(file: Path | Traversable, kind: type[_Line], what: str, *, name: str = "id") -> list[_Line]:
    """Read a labelled set: a JSON object on each line; blank lines are skipped, and what ends in `.gz` is unpacked.

    Args:
        file: The set.
        kind: Type of a line.
        what: What messages call a line.
        name: Field that names a line, each once; empty: none does.

    Raises:
        ConfigurationError: The file cannot be read, a line is of another form, or a name comes twice. Says which line,
            and holds nothing that was said.
    """
    try:
        data = gzip.decompress(file.read_bytes()) if file.name.endswith(".gz") else file.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigurationError(
            f"cannot read {file}: {getattr(error, 'strerror', None) or error}. Give a file of labelled {what}s."
        ) from error
    decoder = msgspec.json.Decoder(kind)
    found: dict[str, _Line] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            decoded = decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            # Not chained: the error itself quotes the value that was wrong, which can be somebody's text.
            raise ConfigurationError(f"{file}, line {number} is not a labelled {what}: {_unquoted(error)}") from None
        named = getattr(decoded, name) if name else str(number)
        if named in found:
            raise ConfigurationError(f"{file}, line {number}: {name} {named} is repeated")
        found[named] = decoded
    return list(found.values())


class _PooledTexts(Struct, frozen=True):
    """What a user said, as a pool of texts has it."""

    family: Identifier
    label: Literal["harmful", "benign"]
    turns: Annotated[list[str], Meta(min_length=1)]
    licence: str = ""


def read_pools(pools: Iterable[Path], beside: Iterable[LabelledDialogue]) -> list[LabelledDialogue]:
    """Read what labels teach: families of pools that bear both labels, alone or with the dialogues beside them.

    Errors are those of `read_labelled`.
    """
    texts = read_pooled(pools)
    sides = {(text.family, text.escalating) for text in [*texts, *beside]}
    return [text for text in texts if (text.family, not text.escalating) in sides]


def read_pooled(pools: Iterable[Path]) -> list[LabelledDialogue]:
    """Read everything in pools; a line has `family`, `label` (`harmful`, `benign`), `licence` and `turns`."""
    return [
        LabelledDialogue(
            session_id=f"{text.family}-{number}",
            source=f"{text.family}_{text.label}",
            label="escalating" if text.label == "harmful" else "benign",
            turns=[DialogueTurn(Role.USER, content) for content in text.turns],
            licence=text.licence,
        )
        for file in pools
        for number, text in enumerate(read_labelled(file, _PooledTexts, "text", name=""))
    ]


def _unquoted(error: Exception) -> str:
    """Its message without the value that it quotes."""
    return _QUOTED_VALUE.sub("none of the values allowed at ", str(error))


def judging_policy(policy: Policy) -> Policy:
    """The policy without memories of topics, users, apps and projects: no judgement looks at them."""
    return structs.replace(
        policy,
        topics=TopicPolicy(enabled=False),
        users=UserPolicy(enabled=False),
        apps=AppPolicy(enabled=False),
        projects=ProjectPolicy(enabled=False),
    )


def turns_of_dialogue(
    dialogue: LabelledDialogue, begins: datetime = _START, numbers: Iterable[int] | None = None
) -> list[Turn]:
    """Its turns as events, one minute apart; its source is the app. Without `numbers` they count from 0."""
    return [
        Turn(
            session_id=dialogue.session_id,
            user_id=dialogue.session_id,
            app_id=dialogue.source,
            turn=number,
            role=said.role,
            content=said.content,
            timestamp=begins + place * BETWEEN_TURNS,
        )
        for place, (number, said) in enumerate(zip(numbers or count(), dialogue.turns, strict=False))
    ]


def folded(
    dialogue: LabelledDialogue,
    risks: Sequence[float],
    vectors: Vectors,
    policy: Policy,
    readings: Sequence[float | None] | None = None,
) -> Iterator[tuple[Turn, SessionState, list[OutputEvent]]]:
    """Fold a dialogue turn by turn: each turn, the session after it, and what it emitted."""
    state: SessionState | None = None
    user_turn = 0
    readings = readings or [None] * len(risks)
    for offset, turn in enumerate(turns_of_dialogue(dialogue)):
        risk, vector, reading = None, None, None
        if turn.role is Role.USER:
            risk, vector = risks[user_turn], vectors[user_turn] if turn.content else None
            reading = readings[user_turn]
            user_turn += 1
        item = SessionInput(turn, Position("turns", 0, offset), turn.timestamp, risk, vector, reading=reading)
        state, outputs = fold(state, item, policy)
        yield turn, state, outputs
