"""Conversations to measure on, and those that come with questions and the turns that answer them.

Conversations are read from files in any format that `turntide produce` reads, else they are the demo's. With questions:

| format | of |
|---|---|
| `locomo` | LoCoMo (Maharana et al. 2024), cleaned: two friends in dated sessions, a user for each conversation |
| `longmemeval` | LongMemEval (Wu et al. 2025): talks with an assistant, a user for each question |
| own | the sets that Turntide brings, in three styles of talk and four languages |
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from jobs.demo.conversations import load_conversations, load_project_conversation, schedule
from jobs.produce.formats import FORMATS, Documents, Filling, InputConversation, Malformed, conversations
from jobs.produce.formats.filling import FileMessage
from jobs.produce.formats.source import InputSource
from models.errors import ConfigurationError, InvalidRecord
from models.events import InputEvent, Role, Turn
from models.retrieval.lexical import terms

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


def read_dialogues(files: Sequence[Path] = (), where: Sequence[str] = ()) -> list[TopicDialogue]:
    """Dialogues of all files in order, or the demo's where no file is given.

    Args:
        files: JSON Lines or arrays, each in a format of `jobs.produce.formats`.
        where: Fields that stand beside a dialogue and what they must be, as name=value; files whose dialogues have none
            of these fields are taken as they are.

    Raises:
        ConfigurationError: A file cannot be read, a condition has no `=`, or there is no dialogue in all of them.
    """
    if wrong := [condition for condition in where if "=" not in condition]:
        raise ConfigurationError(f"--where {wrong[0]}: write it as name=value, for instance label=benign")
    if not files:
        return _demo()
    wanted = {name: value for name, _, value in (condition.partition("=") for condition in where)}
    found = [dialogue for file in files for dialogue in _read(file, wanted)]
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
    return [
        TopicDialogue(file.name, turns[0].user_id, turns)
        for turns in talks
        if turns and all(str((turns[0].metadata or {}).get(name, value)) == value for name, value in where.items())
    ]


def _demo() -> list[TopicDialogue]:
    talks = load_conversations()
    turns: dict[str, list[Turn]] = {talk.session_id: [] for talk in talks}
    for event in (cue.event(BEGINS) for cue in schedule(talks)):
        if isinstance(event, Turn):
            turns[event.session_id].append(event)
    return [TopicDialogue("demo", talk.user_id, turns[talk.session_id]) for talk in talks]


Place = tuple[str, int]
"""Session and number of a turn."""
_TURN_ID = re.compile(r"D:?(\d+):(\d+)")
"""As it stands in the evidence, with its slips: `D8:6; D9:17`, `D:11:26`, `D30:05`."""
_ODD = 5
"""Category of LoCoMo's adversarial questions."""
_SAID = re.compile(r"(?:(?P<name>[^\W\d_][\w.' -]{0,39}: ))?(?P<said>.*)", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_ASSISTANT, _ROLES = "Assistant: ", ("user", "assistant")
_FORGOTTEN = "_abs"
"""Ends the id of a question of LongMemEval that nothing answers."""


class LabelledQuestion(Struct, frozen=True):
    """A question about one user's conversations.

    Attributes:
        groups: What it is averaged with, by name; the first has what a set is judged by. LoCoMo: `1-4`, `1-5`, and its
            category: 1 multi-hop, 2 temporal, 3 open-domain, 4 single-hop, 5 adversarial.
        evidence: Turns that answer it, those that the file names and has.
        answer: In words; may be empty.
    """

    user_id: str
    text: str
    groups: tuple[str, ...]
    evidence: frozenset[Place]
    answer: str = ""


class Dialogues(Struct, frozen=True):
    """What a file holds: the turns in order of time, and the questions that have evidence.

    Attributes:
        learnt: Whether the shipped ranking may have been learned from them.
        without_evidence: Questions that are left out.
        unknown_evidence: Turns that evidence names and the file does not have; they are left out of it.
    """

    name: str
    turns: list[Turn]
    questions: list[LabelledQuestion]
    conversations: int
    learnt: bool = False
    without_evidence: int = 0
    unknown_evidence: int = 0

    @property
    def of_users(self) -> dict[str, list[Turn]]:
        """Turns of each user, in order of time."""
        found = defaultdict[str, list[Turn]](list)
        for turn in sorted(self.turns, key=lambda turn: turn.timestamp):
            found[turn.user_id].append(turn)
        return found


def read_questions(file: Path, form: str = "locomo", *, limit: int | None = None) -> Dialogues:
    """Read conversations and their questions, of a format of `READERS`.

    Raises:
        ConfigurationError: It cannot be read, or is no such file.
    """
    try:
        with file.open("rb") as stream:
            documents = list(islice(Documents(stream), limit))
    except OSError as error:
        raise ConfigurationError(f"cannot read {file}: {error.strerror}") from error
    return READERS[form](file, documents)


class _LocomoQuestion(Struct):
    question: str
    category: int
    evidence: list[str]
    answer: Any = ""


class _QuestionSample(Struct):
    sample_id: str
    qa: list[_LocomoQuestion]


def _locomo(file: Path, documents: Sequence[tuple[int, bytes]]) -> Dialogues:
    turns, filling = list[Turn](), Filling(source=file.stem, now=datetime.now(UTC))
    for item in conversations(FORMATS["locomo"], documents, filling, by_time=True):
        if isinstance(item, Malformed):
            raise ConfigurationError(f"{file}, conversation {item.line}: {item.reason}")
        turns += [event for event in item.events if isinstance(event, Turn)]
    places = {_source_of(turn): (turn.session_id, turn.turn) for turn in turns}
    questions: list[LabelledQuestion] = []
    asked = unknown = 0
    for line, document in documents:
        try:
            sample = msgspec.json.decode(document, type=_QuestionSample)
        except msgspec.DecodeError as error:
            raise ConfigurationError(f"{file}, conversation {line} has no questions to ask: {error}") from error
        user_id = f"user-{sample.sample_id}"
        for each in sample.qa:
            named = [(sample.sample_id, *place) for place in evidence_places(each.evidence)]
            known = frozenset(places[place] for place in named if place in places)
            asked, unknown = asked + 1, unknown + len(named) - len(known)
            groups = ("1-4", "1-5", str(each.category))[each.category == _ODD :]
            if known:
                questions.append(LabelledQuestion(user_id, each.question, groups, known, str(each.answer)))
    missing = asked - len(questions)
    return Dialogues("locomo", turns, questions, len(documents), True, missing, unknown)


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


class _LongTurn(Struct):
    """Evidence where `has_answer` is true."""

    role: str
    content: str
    has_answer: bool | None = None


class _LongQuestion(Struct):
    question_id: str
    question_type: str
    question: str
    haystack_dates: list[str]
    haystack_sessions: list[list[_LongTurn]]
    answer: Any = ""


def _longmemeval(file: Path, documents: Sequence[tuple[int, bytes]]) -> Dialogues:
    turns, questions = list[Turn](), list[LabelledQuestion]()
    for line, document in documents:
        try:
            asked = msgspec.json.decode(document, type=_LongQuestion)
            # `2023/05/20 (Sat) 02:21`, the weekday in English whatever the locale.
            began = [
                datetime.strptime(each[:10] + each[-6:], "%Y/%m/%d %H:%M").replace(tzinfo=UTC)
                for each in asked.haystack_dates
            ]
            evidence = set[Place]()
            user_id = f"user-{asked.question_id}"
            for number, (time, said) in enumerate(zip(began, asked.haystack_sessions, strict=True)):
                session_id = f"{asked.question_id}/{number}"
                turns += spoken(session_id, time, [(each.role, each.content) for each in said], user_id)
                evidence |= {(session_id, at) for at, each in enumerate(said) if each.has_answer}
        except (msgspec.DecodeError, ValueError, InvalidRecord) as error:
            raise ConfigurationError(f"{file}, question {line}: not as LongMemEval has it: {error}") from error
        if evidence and not asked.question_id.endswith(_FORGOTTEN):
            groups, known = ("all", asked.question_type), frozenset(evidence)
            questions.append(LabelledQuestion(user_id, asked.question, groups, known, str(asked.answer)))
    turns.sort(key=lambda turn: turn.timestamp)
    missing = len(documents) - len(questions)
    return Dialogues("longmemeval", turns, questions, len(documents), without_evidence=missing)


READERS = {"locomo": _locomo, "longmemeval": _longmemeval}


class _OwnQuestion(Struct, forbid_unknown_fields=True):
    """`inflected` asks the same with words of the turns in other forms, where a set has it."""

    ask: str
    told: list[str]
    inflected: str = ""


class _OwnTalk(Struct, forbid_unknown_fields=True):
    id: str
    began: datetime
    said: str


class _OwnSet(Struct, forbid_unknown_fields=True):
    questions: dict[str, list[_OwnQuestion]]
    talks: list[_OwnTalk]


def own_questions() -> list[Dialogues]:
    """The sets that Turntide brings, by style or language: each as one user's talks.

    Raises:
        ConfigurationError: A piece of evidence stands in no turn or in several.
    """
    data = files("jobs.lab.eval") / "data"
    own = [
        msgspec.toml.decode((data / file).read_bytes(), type=_OwnSet)
        for file in ("search_questions.toml", "search_questions_languages.toml")
    ]
    said: dict[str, list[InputEvent]] = {
        "assistant": [cue.event(BEGINS) for cue in schedule(load_conversations())],
        "team": [cue.event(BEGINS) for cue in schedule([load_project_conversation()])],
    }
    for talk in chain.from_iterable(each.talks for each in own):
        lines = talk.said.strip().splitlines()
        told = [(_ROLES[line.startswith(_ASSISTANT)], line.removeprefix(_ASSISTANT)) for line in lines]
        chat = spoken(talk.id, talk.began, told, apart=timedelta(seconds=20))
        said.setdefault(talk.id.rpartition("-")[0], []).extend(chat)
    sets = list[Dialogues]()
    for style, asked in chain.from_iterable(each.questions.items() for each in own):
        turns = [turn for turn in said[style] if isinstance(turn, Turn)]
        sets.append(_own(style, asked, turns))
        if inflected := [replace(each, ask=each.inflected) for each in asked if each.inflected]:
            sets.append(_own(f"{style}-inflected", inflected, turns))
    return sets


def spoken(
    session_id: str,
    began: datetime,
    said: Iterable[tuple[str, str]],
    user_id: str | None = None,
    *,
    apart: timedelta = timedelta(minutes=1),
) -> list[Turn]:
    """Turns of roles and texts, the first when it began."""
    messages = [
        FileMessage(role=role, content=content, timestamp=began + n * apart) for n, (role, content) in enumerate(said)
    ]
    return Filling(source=session_id, now=began).turns(session_id, messages, user_id=user_id)


def _own(style: str, asked: Iterable[_OwnQuestion], said: Sequence[Turn]) -> Dialogues:
    def place(piece: str) -> Place:
        found = [(turn.session_id, turn.turn) for turn in said if piece in turn.content]
        if len(found) != 1:
            raise ConfigurationError(f"search_questions, {style}: “{piece}” stands in {len(found)} turns")
        return found[0]

    questions = [
        LabelledQuestion(style, each.ask, ("all",), frozenset(place(piece) for piece in each.told)) for each in asked
    ]
    turns = [replace(turn, user_id=style) for turn in said]
    return Dialogues(style, turns, questions, len({turn.session_id for turn in turns}))


def in_bursts(dialogues: Dialogues) -> Dialogues:
    """The same talks as people type them: a message for each sentence.

    Of a turn that answers, the message counts that has most words of the answer; of equal ones the longest.
    """
    turns, counts = list[Turn](), defaultdict[str, int](int)
    messages = dict[Place, list[tuple[Place, str]]]()
    for turn in dialogues.turns:
        named = _SAID.fullmatch(turn.content)
        assert named is not None, "it takes every text"  # noqa: S101
        for sentence in _SENTENCE.split(named["said"].strip()):
            number = counts[turn.session_id]
            counts[turn.session_id] += 1
            turns.append(replace(turn, turn=number, content=f"{named['name'] or ''}{sentence}"))
            messages.setdefault((turn.session_id, turn.turn), []).append(((turn.session_id, number), sentence))

    def answering(place: Place, words: set[int]) -> Place:
        return max(messages[place], key=lambda each: (len(words.intersection(terms(each[1]))), len(each[1])))[0]

    questions = [
        replace(each, evidence=frozenset(answering(place, set(terms(each.answer))) for place in each.evidence))
        for each in dialogues.questions
    ]
    return replace(dialogues, name="bursts", turns=turns, questions=questions)
