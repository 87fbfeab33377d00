"""The port of a language model that answers in JSON of a given form. Needs no extra.

What a model says is data: it is decoded by the caller's type or refused. Nothing of a request or an answer is logged or
put into an error's message.
"""

import tomllib
from collections.abc import Mapping
from datetime import timedelta
from importlib.resources import files
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Struct

from models.errors import LlmRubbish

Answer = TypeVar("Answer", bound=Struct)
PROMPTS: Mapping[str, str] = tomllib.loads(files(__package__).joinpath("prompts.toml").read_text("utf-8"))
"""System messages by task."""


class LlmReply(Struct, frozen=True):
    """Answer of a language model, not decoded yet.

    Attributes:
        tokens: Of question and answer together, as its server counts them; None where it does not tell.
        first_tokens: What its first word could have begun with, and how likely; empty where the server does not tell.
    """

    text: str
    tokens: int | None = None
    first_tokens: dict[str, float] = {}


class Llm(Protocol):
    """A language model."""

    name: str

    async def complete(
        self, system: str, user: str, schema: type[Struct], *, within: timedelta | None = None
    ) -> LlmReply:
        """Ask the model; the answer is not decoded yet.

        Args:
            system: What to do. Our own words only: text of conversations goes into `user`.
            user: What to do it with.
            schema: The answer's type, for the server; `decode_answer` makes one of the text.
            within: All tries together; None: as its settings say.

        Raises:
            LlmUnavailable: No answer, after all tries; `LlmTimedOut` if none came in time.
        """
        ...

    async def close(self) -> None:
        """Release connections."""
        ...


async def answer_of(llm: Llm, task: str, material: object, schema: type[Answer]) -> Answer:
    """Have a model do a task of `PROMPTS` with material, which it is given as JSON.

    Raises:
        LlmUnavailable: No answer, after all tries.
        LlmRubbish: It is none of this form.
    """
    reply = await llm.complete(PROMPTS[task], msgspec.json.encode(material).decode(), schema)
    return decode_answer(reply.text, schema)


def decode_answer(said: str, schema: type[Answer]) -> Answer:
    """The object a model said, also if it stands between other words (code fences, "Here you are:", thoughts).

    Raises:
        LlmRubbish: There is none of this form.
    """
    _, _, answer = said.rpartition("</think>")
    start = answer.find("{")
    body = answer[start : answer.rfind("}") + 1] if start >= 0 else ""
    try:
        return msgspec.json.decode(body, type=schema)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise LlmRubbish(f"a language model's answer is no {schema.__name__} ({len(said)} characters)") from error


def json_schema(schema: type[Struct]) -> dict[str, Any]:
    """JSON Schema of a type as servers want it: an object at its root, without titles and descriptions."""
    (root,), named = msgspec.json.schema_components([schema], ref_template="#/$defs/{name}")
    _, _, name = str(root.get("$ref", "")).rpartition("/")
    described: dict[str, Any] = _bare(named.pop(name, root))
    return {**described, "$defs": {each: _bare(one) for each, one in named.items()}} if named else described


def _bare(node: Any) -> Any:
    """A schema without what our docstrings say of it."""
    if isinstance(node, list):
        return [_bare(each) for each in node]
    if not isinstance(node, dict):
        return node
    kept = {word: value for word, value in node.items() if word not in ("title", "description")}
    fields = {name: _bare(field) for name, field in kept.pop("properties", {}).items()}
    return {word: _bare(value) for word, value in kept.items()} | ({"properties": fields} if fields else {})
