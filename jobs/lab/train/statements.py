"""`turntide lab train statements`: the second reader of statements, from messages written for it by many manners.

`jobs/lab/train/statements.tsv` has them: by whose manner, what the message states (empty: nothing), for what reason it
states nothing, the message. Measured twice: on each manner with a reader trained on the others, and on the labelled
set of `turntide lab eval extraction`; beside rules alone, and rules with a bag of words fitted on the same messages.
"""

import csv
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.linear_model import LogisticRegression

from jobs.lab.bench.measuring import Figures
from jobs.lab.eval import scores
from jobs.lab.eval.extraction import LabelledSentence, LabelledStatement, by_rules, judge, read_messages
from jobs.lab.train.turns import bag_of_words, int8_of
from models.errors import ConfigurationError
from models.events.base import Role
from models.events.project import ReadStatement
from models.events.project_items import MemoryType
from models.language.statements.extraction import ExtractedStatement, stated, unread
from models.language.statements.spoken import sentences_of
from models.risk.turn_model import WORD_BITS
from streams.inference.statement_reader import (
    DENSE,
    TYPES,
    WORDS,
    Embed,
    ReaderWeights,
    StatementReader,
    probable,
    word_vector,
)
from streams.ports import Vectors

STRENGTH = 1.0
"""Inverse of the L2 penalty."""

Read = Callable[[Sequence[str]], list[ReadStatement]]


class WrittenMessage(NamedTuple):
    """A message to learn from; `states` is a memory type or empty, `because` says why it states nothing."""

    manner: str
    states: str
    because: str
    text: str

    @property
    def place(self) -> int:
        """Of its class among `TYPES`."""
        return TYPES.index(MemoryType(self.states) if self.states else None)

    @property
    def said(self) -> str:
        """As a reader sees it."""
        return " ".join(sentences_of(self.text)) or self.text

    @property
    def labelled(self) -> LabelledSentence:
        """As the evaluation sees it."""
        expected = [LabelledStatement(MemoryType(self.states))] if self.states else []
        return LabelledSentence("", "test", self.because or "plain", Role.USER, self.text, expected)


def read_written(file: Path | None = None) -> list[WrittenMessage]:
    """Read messages to learn from; None: those that Turntide brings.

    Raises:
        ConfigurationError: A line has other columns than the four, or another type.
    """
    own = files(__package__).joinpath("statements.tsv")
    lines = (file or own).read_text("utf-8").splitlines()
    rows = list(csv.reader(lines[1:], delimiter="\t", quoting=csv.QUOTE_NONE))
    for number, row in enumerate(rows, start=2):
        if len(row) != len(WrittenMessage._fields) or (row[1] and row[1] not in set(MemoryType)):
            raise ConfigurationError(f"{file or own}:{number}: not a line of manner, states, because and text")
    return [WrittenMessage(*row) for row in rows]


def embedded_once(embed: Embed) -> Embed:
    """The same vectors, with each text embedded once."""
    known: dict[str, Vectors] = {}

    def remembered(texts: Sequence[str]) -> Vectors:
        new = list(dict.fromkeys(text for text in texts if text not in known))
        known.update(zip(new, embed(new), strict=True))
        return np.array([known[text] for text in texts], np.float32).reshape(len(texts), -1)

    return remembered


def train(written: Sequence[WrittenMessage], vectors: Vectors) -> ReaderWeights:
    """Softmax regression on vectors and hashed words; `vectors` are those of what is said, `(n, 384)`."""
    mean, rows = vectors.mean(axis=0), [word_vector(each.said) for each in written]
    places, values = (np.concatenate(part) for part in zip(*rows, strict=True))
    ends = np.cumsum([0, *(len(of) for of, _ in rows)])
    said = csr_matrix((values, places, ends), shape=(len(rows), 2**WORD_BITS))
    features = hstack([csr_matrix((vectors - mean) * DENSE), said * WORDS]).tocsr()
    fitted = LogisticRegression(C=STRENGTH, max_iter=300).fit(features, [each.place for each in written])
    if len(fitted.classes_) != len(TYPES):
        raise ConfigurationError("messages of every type, and some that state nothing, are needed")
    dim = vectors.shape[1]
    dense, dense_scale = int8_of(fitted.coef_[:, :dim] * DENSE)
    words, words_scale = int8_of(fitted.coef_[:, dim:] * WORDS)
    offset = fitted.intercept_ - fitted.coef_[:, :dim] @ (mean * DENSE)
    return ReaderWeights(dense, words, offset.astype(np.float32), np.array([dense_scale, words_scale], np.float32))


def by_words(written: Sequence[WrittenMessage]) -> Read:
    """A bag of words and pairs, with the same threshold."""
    pipe = bag_of_words(pairs=True, balanced=False)
    pipe.fit([each.said for each in written], [each.place for each in written])
    return lambda sentences: probable(sentences, pipe.predict_proba(sentences)) if sentences else []


def rules_then(read: Read, sentence: LabelledSentence) -> list[ExtractedStatement]:
    """What a message states by the rules, and in sentences of the user that they leave by this reader."""
    left = unread(sentence.text, context=sentence.context) if sentence.role is Role.USER else []
    second = [stated(each.content, each.memory_type, each.confidence) for each in read(left)]
    return [*by_rules(sentence), *second]


def measure(
    written: Sequence[WrittenMessage], vectors: Vectors, embed: Embed, promote_from: float
) -> Iterator[Figures]:
    """Figures on manners left out, then on each split of the labelled set, three ways of reading each."""

    def ways(rows: NDArray[np.bool_]) -> dict[str, Read]:
        learnt = [each for each, chosen in zip(written, rows, strict=True) if chosen]
        reader = StatementReader(embed, train(learnt, vectors[rows]))
        return {"rules": lambda _: [], "rules, bag of words": by_words(learnt), "rules, second reader": reader.read}

    manners = np.array([each.manner for each in written])
    left_out: dict[str, list[scores.Judged]] = {}
    for manner in sorted(set(manners)):
        own = [each.labelled for each in written if each.manner == manner]
        for name, read in ways(manners != manner).items():
            left_out.setdefault(name, []).extend(judge(each, rules_then(read, each), promote_from) for each in own)
    for name, judged in left_out.items():
        yield _scores("manners left out", name, judged)
    labelled, all_ways = read_messages(), ways(np.ones(len(written), np.bool_))
    for split in ("test", "rare", "foreign"):
        for name, read in all_ways.items():
            chosen = [each for each in labelled if each.split == split]
            yield _scores(split, name, [judge(each, rules_then(read, each), promote_from) for each in chosen])


def _scores(messages: str, reader: str, judged: Sequence[scores.Judged]) -> Figures:
    """Figures of a way of reading on some messages; `left_alone`: of those that state nothing."""
    of, left_alone = scores.figures(judged), scores.share_clean(judged)
    ratios = {"precision": of.precision, "recall": of.recall, "f1": of.f1, "left_alone": left_alone}
    shown = {name: None if each is None else round(each, 3) for name, each in ratios.items()}
    return {"messages": messages, "reader": reader, **shown, "labelled": of.gold}
