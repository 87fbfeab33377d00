"""BM25 by English stems and stop words, whatever the language: what search by words would find if it knew no other."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from heapq import nlargest
from math import log

from jobs.lab.eval.questions import Place
from models.events import Turn
from models.retrieval.lexical import date_words, document_vector, terms


class EnglishWords:
    """Users' turns by the words they have, weighed as the index weighs them (`models.retrieval.lexical`)."""

    def __init__(self, turns: Iterable[Turn]) -> None:
        self._turns = defaultdict[str, list[tuple[Place, dict[int, float]]]](list)
        for turn in turns:
            vector = document_vector(f"{turn.content}\n{date_words(turn.timestamp)}")
            weights = dict(zip(vector.indices.tolist(), vector.values.tolist(), strict=True))
            self._turns[turn.user_id].append(((turn.session_id, turn.turn), weights))

    def search(self, user_id: str, question: str, most: int) -> list[Place]:
        """The user's turns that have words of the question, best first."""
        turns, scores = self._turns[user_id], defaultdict[Place, float](float)
        for term, count in Counter(terms(question)).items():
            having = [(place, weights[term]) for place, weights in turns if term in weights]
            idf = log((len(turns) - len(having) + 0.5) / (len(having) + 0.5) + 1)
            for place, weight in having:
                scores[place] += count * idf * weight
        return nlargest(most, scores, scores.__getitem__)
