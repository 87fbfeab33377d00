"""The second reader of statements: what it is asked, what its answers come to, and what it makes of its weights."""

from typing import Any

import numpy as np
import pytest

from models.events import MemoryType, ReadStatement, StatementsRead, StatementsRequested
from models.risk.turn_model import WORD_BITS
from streams.inference.statement_reader import TYPES, ReaderWeights, StatementReader, word_vector
from tests.support.project_driver import Project, causes

ASKING = {"ask": True}
SILENT = "Calling it: two nodes."


def answered(project: Project, *, confidence: float = 0.8, session: str = "s0") -> StatementsRead:
    """The reader's answer for the first message."""
    said = ReadStatement(content=SILENT, memory_type=MemoryType.DECISION, confidence=confidence)
    asked = project.of(StatementsRequested)[0].source.offset
    of: dict[str, Any] = {**project.ids, "session_id": session, "asked_offset": asked}
    return StatementsRead(timestamp=project.now, turn=0, statements=[said], **of)


def test_it_is_asked_for_sentences_in_which_rules_find_nothing() -> None:
    """Not for what they find, questions, secrets, or what an assistant says; without the policy for nothing."""
    asking, silent = Project(long_term=ASKING), Project()
    for project in (asking, silent):
        project.say(f"We chose Vue. {SILENT} Is it fast? My password is hunter2 forever.")
        project.say("Calling it: three nodes.")

    assert [[SILENT]] == [each.sentences for each in asking.of(StatementsRequested)]
    assert [] == silent.of(StatementsRequested)


def test_its_answer_becomes_a_memory_of_the_turn_once() -> None:
    """An answer that comes again, as after a crash, changes nothing."""
    project = Project(long_term=ASKING)
    project.say(SILENT)
    answer = answered(project)
    project.put(answer)
    again = project.put(answer)
    memory = project.memory("Calling it: two nodes")

    assert (MemoryType.DECISION, 0.8, 1) == (memory.type, memory.confidence, memory.mentions)
    assert [("s0", 0, "user", "rules")] == [(s.conversation_id, s.turn, s.role, s.by) for s in memory.sources]
    assert [] == causes(again)
    assert [memory.id] == next(iter(project.items("conversation").values())).active_facts


def test_what_it_is_less_sure_of_waits_and_does_not_grow_by_itself() -> None:
    """Twice the same answer is not said twice."""
    project = Project(long_term=ASKING)
    project.say(SILENT)
    answer = answered(project, confidence=0.55)
    for _ in range(2):
        project.put(answer)

    assert [0.55] == [each.confidence for each in project.items("pending").values()]
    assert {} == project.items("memory")


def test_a_word_that_speaks_for_a_type_decides_where_vectors_say_nothing() -> None:
    """By its weight; a sentence without it is left alone, and no sentence is no error."""
    words = np.zeros((len(TYPES), 2**WORD_BITS), np.int8)
    (place, *_), (sign, *_) = word_vector("nodes")
    words[TYPES.index(MemoryType.GOAL), place] = int(100 * np.sign(sign))
    nothing = np.array([2.0, *[0.0] * 7], np.float32)
    weights = ReaderWeights(np.zeros((len(TYPES), 384), np.int8), words, nothing, np.ones(2, np.float32))
    reader = StatementReader(lambda texts: np.zeros((len(texts), 384), np.float32), weights)

    assert [("Two nodes", MemoryType.GOAL)] == [
        (each.content, each.memory_type) for each in reader.read(["Two nodes", "Two apples", "", "!"])
    ]
    assert [] == reader.read([])


@pytest.mark.parametrize("sentence", ["", "?", "one", "\ud800 and more"])
def test_any_sentence_has_a_vector_of_words(sentence: str) -> None:
    """Of unit length, or zero."""
    places, values = word_vector(sentence)

    assert len(places) == len(values)
    assert np.linalg.norm(values) == pytest.approx(float(len(places) > 0))
