"""Port of a language model that answers in JSON of a given form. Needs no extra.

Answers are data: they are decoded by the caller's type or refused. Requests and answers never appear in logs or errors.
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
        tokens: Tokens of prompt and answer as counted by the server; None if it reports none.
        first_tokens: Likely first tokens with their probabilities; empty if the server reports none.
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
        """Send a prompt; the answer is not decoded.

        Args:
            system: Instructions, only from this program: text of conversations goes into `user`.
            user: Input of the task.
            schema: Type of the answer, for the server; `decode_answer` decodes the text.
            within: Time limit of all tries together; None: as in the settings.

        Raises:
            LlmUnavailable: No answer after all tries; `LlmTimedOut` if none came in time.
        """
        ...

    async def close(self) -> None:
        """Release connections."""
        ...


async def answer_of(llm: Llm, task: str, material: object, schema: type[Answer]) -> Answer:
    """Give a model a task of `PROMPTS` with its input as JSON.

    Raises:
        LlmUnavailable: No answer after all tries.
        LlmRubbish: The answer does not have this form.
    """
    reply = await llm.complete(PROMPTS[task], msgspec.json.encode(material).decode(), schema)
    return decode_answer(reply.text, schema)


def decode_answer(said: str, schema: type[Answer]) -> Answer:
    """The object in a model's answer, also inside other text (code fences, "Here you are:", reasoning).

    Raises:
        LlmRubbish: No object has this form.
    """
    _, _, answer = said.rpartition("</think>")
    start = answer.find("{")
    body = answer[start : answer.rfind("}") + 1] if start >= 0 else ""
    try:
        return msgspec.json.decode(body, type=schema)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise LlmRubbish(f"a language model's answer is no {schema.__name__} ({len(said)} characters)") from error


def json_schema(schema: type[Struct]) -> dict[str, Any]:
    """JSON Schema of a type for servers: an object at its root, without titles and descriptions."""
    (root,), named = msgspec.json.schema_components([schema], ref_template="#/$defs/{name}")
    _, _, name = str(root.get("$ref", "")).rpartition("/")
    described: dict[str, Any] = _bare(named.pop(name, root))
    return {**described, "$defs": {each: _bare(one) for each, one in named.items()}} if named else described


def _bare(node: Any) -> Any:
    """A schema without titles and descriptions."""
    if isinstance(node, list):
        return [_bare(each) for each in node]
    if not isinstance(node, dict):
        return node
    kept = {word: value for word, value in node.items() if word not in ("title", "description")}
    fields = {name: _bare(field) for name, field in kept.pop("properties", {}).items()}
    return {word: _bare(value) for word, value in kept.items()} | ({"properties": fields} if fields else {})
