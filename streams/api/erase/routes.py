"""Erasing a user, a session or an app over HTTP (design §5): asking for it, and its proof."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from typing import Annotated
from uuid import uuid4

import msgspec
import structlog
from fastapi import APIRouter, Depends, Path, Request
from fastapi.responses import Response

from models.events.erase import EraseRequested, EraseScope
from streams.api import openapi
from streams.api.apps import examples
from streams.api.apps.messages import now_utc
from streams.api.commands import read_only
from streams.api.erase.messages import Accepted, Erase, ErasureStanding
from streams.api.users.ports import EraseRequests
from streams.http.audit import ACTS
from streams.http.bodies import json_answer, read_body
from streams.http.problems import Problem, invalid_field
from streams.http.security import Caller, caller, require_admin

log = structlog.get_logger(__name__)

_RequestId = Annotated[
    str, Path(min_length=1, max_length=64, description="As the request was answered.", examples=[examples.REQUEST_ID])
]
_ERASE = msgspec.json.Decoder(Erase)


def erase_router(requests: EraseRequests | None, *, now: Callable[[], datetime] = now_utc) -> APIRouter:
    """Routes of erasure.

    Args:
        requests: Where they go; None: this role takes none.
        now: The clock of requests.
    """
    router = APIRouter(prefix="/v1/erase", tags=["erasure"], dependencies=[Depends(require_admin)])

    @router.post(
        "",
        dependencies=ACTS,
        status_code=HTTPStatus.ACCEPTED,
        openapi_extra=openapi.body(Erase, examples.ERASE),
        responses=openapi.answer(Accepted, examples.ACCEPTED, status=HTTPStatus.ACCEPTED),
    )
    async def erase(request: Request) -> Response:
        """Have everything of a user, a session or an app erased, everywhere; the proof comes later."""
        asked = await read_body(request, _ERASE)
        asked_by = caller()
        scope = _scope(asked, asked_by)
        if requests is None:
            raise read_only()
        wanted = EraseRequested(
            request_id=uuid4().hex,
            timestamp=now(),
            scope=scope,
            app_id=asked.app_id or "",
            user_id=asked.user_id or "",
            session_id=asked.session_id or "",
            by=asked_by.name,
            purge_logs=asked.purge_logs,
        )
        await requests.request(wanted)
        log.info("erasure_requested", scope=scope, by=asked_by.name, request_id=wanted.request_id)
        place = f"/v1/erase/{wanted.request_id}"
        accepted = Accepted(request_id=wanted.request_id, scope=scope, status=place)
        return json_answer(accepted, status=HTTPStatus.ACCEPTED, headers={"Location": place})

    @router.get("/{request_id}", responses=openapi.answer(ErasureStanding, examples.ERASURE))
    async def standing(request_id: _RequestId) -> Response:
        """The proof of an erasure: what was looked at and removed, store by store. It names nobody."""
        if requests is None:
            raise read_only()
        proof = await requests.proof(request_id)
        return json_answer(ErasureStanding(request_id=request_id, proved=proof is not None, proof=proof))

    return router


def _scope(asked: Erase, asked_by: Caller) -> EraseScope:
    """What is to be erased, if the caller may.

    Raises:
        Problem: 422 nobody is named, or two things are; 403 it is another tenant's too.
    """
    for field in ("user_id", "app_id", "session_id"):
        if not (getattr(asked, field) or "").isprintable():
            raise invalid_field(field, "holds control characters")
    if asked.session_id is not None and (asked.user_id is not None or asked.app_id is not None):
        raise invalid_field("session_id", "a session is erased whole: name it alone")
    if asked.session_id is None and asked.user_id is None and asked.app_id is None:
        raise invalid_field("", "name a user_id, an app_id, both, or a session_id")
    if asked.app_id is not None:
        asked_by.app_of(asked.app_id)
    elif asked_by.apps is not None:
        raise Problem(
            HTTPStatus.FORBIDDEN,
            "forbidden_app",
            "this token is bound to apps: name the app_id whose user, or which, is to be erased",
        )
    if asked.purge_logs and asked_by.apps is not None:
        detail = "purge_logs also drops what other tenants wrote before: it takes an admin token of all apps"
        raise Problem(HTTPStatus.FORBIDDEN, "forbidden", detail)
    if asked.session_id is not None:
        return "session"
    return "app" if asked.user_id is None else "user"
