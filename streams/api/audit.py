"""What is noted of requests that read what was said, or change something: dependencies of routes.

A route says what it is by `Depends(reads_text)` or `Depends(acts)`; the request's scope keeps it.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Literal

from fastapi import Request

from streams.api.problems import Problem
from streams.api.security import Caller, caller

AUDITED = "turntide.audited"
"""Of a request's ASGI scope: `text_read` or `acted`."""
Audited = Literal["text_read", "acted"]


def reads_text(request: Request) -> Caller:
    """Of a route whose answer holds what was said.

    Raises:
        Problem: 401 nobody was let in; 403 the token may not read text.
    """
    found = caller()
    if not found.text:
        raise Problem(
            HTTPStatus.FORBIDDEN, "forbidden_text", "this token may not read what was said (http.tokens, text)"
        )
    request.scope[AUDITED] = "text_read"
    return found


def acts(request: Request) -> Caller:
    """Of a route that changes something; who may is the route's own matter.

    Raises:
        Problem: 401, nobody was let in.
    """
    request.scope[AUDITED] = "acted"
    return caller()
