"""Bodies that routes decode and encode themselves: by msgspec, once, and past FastAPI's own validation.

That would cost more than the retrieval itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec
from fastapi import Request
from fastapi.responses import Response

from streams.http.audit import note_given, note_ids
from streams.http.problems import undecodable

_Message = TypeVar("_Message")
_encode = msgspec.json.Encoder().encode


async def read_body(request: Request, decoder: msgspec.json.Decoder[_Message]) -> _Message:
    """The request's body.

    Raises:
        Problem: 422, with the field and without what it held.
    """
    body = await request.body()
    try:
        asked = decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise undecodable(error, decoder.type) from None
    note_ids(lambda name: getattr(asked, name, None))
    return asked


def json_answer(
    answer: Any, *, status: HTTPStatus = HTTPStatus.OK, headers: Mapping[str, str] | None = None
) -> Response:
    """A message as the answer."""
    note_given(answer)
    return Response(_encode(answer), status, headers, media_type="application/json")
