"""A model behind OpenAI's API as a judge: Llama Guard, or any chat model that is told what to judge. Extra `llm`.

What it says is read in one of two forms: an object with `harmful` and `probability`, or the bare word of guard models,
`safe` or `unsafe` with the categories on further lines. Where the server tells how likely either word was, that is the
probability (Llama Guard, arXiv 2312.06674, scores so). Anything else is no answer.
"""

import math
import re
from collections.abc import Sequence
from datetime import timedelta
from itertools import dropwhile, groupby
from typing import Literal

import msgspec
from msgspec import Struct

from models.errors import JudgeFailed, LlmRubbish, LlmTimedOut, LlmUnavailable
from models.events import JudgedTurn, Ratio, Role
from streams.inference.llm_answers import PROMPTS, LlmReply, decode_answer
from streams.inference.llm_client import Message, OpenAiLlm

Form = Literal["instructed", "guard"]
"""How a model is asked: told what to judge, or given the conversation as it is, since its template has the question."""

_WORD = re.compile(r"\s*(safe|unsafe)\.?\s*(\n.*)?", re.DOTALL | re.IGNORECASE)
_MOST_TOKENS = 64
"""Of a guard model's answer: a word, and categories."""
_EVEN = 0.5


class OpenAiJudge:
    """Asks a model once for each judgement.

    Args:
        top_logprobs: Of a guard model, how many of the words that it could have begun with are asked for; 0 for
            servers that refuse such a question.
        sure: Probability that a verdict without any counts as.
    """

    def __init__(self, llm: OpenAiLlm, *, form: Form, top_logprobs: int, sure: float) -> None:
        self.name = llm.name
        self._llm = llm
        self._form = form
        self._top_logprobs = top_logprobs
        self._sure = sure

    async def judge(self, turns: Sequence[JudgedTurn], *, within: timedelta) -> float:
        """Probability that the turns are harmful, as the model says.

        Raises:
            JudgeFailed: No answer in time, none of a known form, or nothing to judge.
        """
        if not any(turn.content.strip() for turn in turns):
            raise JudgeFailed("no_text", "the turns have no text")
        try:
            return verdict(await self._ask(turns, within), sure=self._sure)
        except LlmTimedOut as error:
            raise JudgeFailed("timeout", str(error)) from error
        except LlmUnavailable as error:
            raise JudgeFailed("unavailable", str(error)) from error
        except LlmRubbish as error:
            raise JudgeFailed("rubbish", str(error)) from error

    async def close(self) -> None:
        """Release connections."""
        await self._llm.close()

    async def _ask(self, turns: Sequence[JudgedTurn], within: timedelta) -> LlmReply:
        if self._form == "instructed":
            as_data = msgspec.json.encode({"turns": turns}).decode()
            return await self._llm.complete(PROMPTS["judge"], as_data, _Verdict, within=within)
        messages = _as_conversation(turns)
        if not messages:
            raise JudgeFailed("no_text", "the user has said nothing in these turns")
        return await self._llm.classify(
            messages, top_logprobs=self._top_logprobs, most_tokens=_MOST_TOKENS, within=within
        )


class _Verdict(Struct, frozen=True):
    harmful: bool
    probability: Ratio | None = None


def verdict(said: LlmReply, *, sure: float) -> float:
    r"""Probability of harm that an answer states.

    >>> benign = LlmReply('{"harmful": false, "probability": 0.25}')
    >>> verdict(LlmReply("unsafe\nS9"), sure=0.9), verdict(benign, sure=0.9)
    (0.9, 0.25)

    Raises:
        LlmRubbish: It states none, or contradicts itself.
    """
    _, _, answer = said.text.rpartition("</think>")
    if word := _WORD.fullmatch(answer):
        is_unsafe = word[1].lower() == "unsafe"
        weighed = _of_words(said.first_tokens)
        return weighed if weighed is not None else sure if is_unsafe else 1 - sure
    stated = decode_answer(answer, _Verdict)
    if stated.probability is None:
        return sure if stated.harmful else 1 - sure
    if stated.probability != _EVEN and stated.harmful != (stated.probability > _EVEN):
        raise LlmRubbish(f"harmful is {stated.harmful}, and its probability {stated.probability:.2f}")
    return stated.probability


def _of_words(first_tokens: dict[str, float]) -> float | None:
    """Share of `unsafe` in what it had for both words, also where a token is only the beginning of one."""
    of = {"safe": 0.0, "unsafe": 0.0}
    for token, probability in first_tokens.items():
        begun = token.strip().lower()
        for word in of:
            if begun and word.startswith(begun):
                of[word] += probability
    both = math.fsum(of.values())
    return of["unsafe"] / both if both > 0 else None


def _as_conversation(turns: Sequence[JudgedTurn]) -> list[Message]:
    """What user and assistant said by turns, the user first and last, as templates of guard models demand."""
    spoken = [turn for turn in turns if turn.role in (Role.USER, Role.ASSISTANT) and turn.content.strip()]
    pieces = [(role, "\n\n".join(turn.content for turn in said)) for role, said in groupby(spoken, lambda t: t.role)]
    for _ in range(2):  # from the front, then from the back
        pieces = list(dropwhile(lambda piece: piece[0] is not Role.USER, pieces))[::-1]
    return [_message(role, content) for role, content in pieces]


def _message(role: Role, content: str) -> Message:
    if role is Role.USER:
        return {"role": "user", "content": content}
    return {"role": "assistant", "content": content}
