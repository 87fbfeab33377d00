"""Numbers of turns that were sent, as readers see them: asked of a role that serves memory."""

from collections.abc import Sequence
from http import HTTPStatus
from itertools import groupby

import httpx
import msgspec
from msgspec import Struct, structs

from streams.gateway.gateway import AcceptedTurn
from streams.http.limits import extend_deadline
from streams.http.problems import Problem

WAIT_MS = 2_000
_SLACK_S = 2.0


class NumberedMessage(Struct, frozen=True, kw_only=True):
    """A message and the number of its turn."""

    message_id: str
    turn: int


class IndexedNumbers:
    """Waits until turns are indexed.

    Args:
        url: Base address of the role; None: none is known.
        transport: For tests.
    """

    def __init__(self, url: str | None, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        within_s = WAIT_MS / 1_000 + _SLACK_S
        self._client = httpx.AsyncClient(base_url=url or "", timeout=within_s, transport=transport, trust_env=False)

    async def of(self, accepted: Sequence[AcceptedTurn], authorization: str | None) -> list[AcceptedTurn]:
        """The turns with their numbers, once readers find them.

        Args:
            accepted: What the log has.
            authorization: Header of who asks: the role that is asked looks at it likewise.

        Raises:
            Problem: 504, they are not there in time, or the role does not answer; it says what was accepted.
        """
        extend_deadline(WAIT_MS / 1_000)
        headers = {} if authorization is None else {"authorization": authorization}
        numbers: dict[tuple[str, str, str], int] = {}
        of_session = sorted(accepted, key=_session)  # stable: in the order of the log
        for (app_id, session_id), turns in groupby(of_session, key=_session):
            ids = [turn.message_id for turn in turns]
            asked = {"app_id": app_id, "session_id": session_id, "message_ids": ids, "timeout_ms": WAIT_MS}
            try:
                answer = await self._client.post("/v1/turns/wait", json=asked, headers=headers)
            except httpx.HTTPError as error:
                raise _not_visible(accepted, f"the role that serves memory does not answer: {error!r}") from error
            if answer.status_code != HTTPStatus.OK:
                raise _not_visible(accepted, f"the role that serves memory answers {answer.status_code}")
            found = msgspec.json.decode(answer.content, type=list[NumberedMessage])
            numbers |= {(app_id, session_id, each.message_id): each.turn for each in found}
        return [structs.replace(each, turn=numbers[*_session(each), each.message_id]) for each in accepted]

    async def close(self) -> None:
        """Disconnect."""
        await self._client.aclose()


def _session(turn: AcceptedTurn) -> tuple[str, str]:
    return turn.app_id, turn.session_id


def _not_visible(accepted: Sequence[AcceptedTurn], why: str) -> Problem:
    kept = msgspec.json.encode(accepted).decode()
    return Problem(
        HTTPStatus.GATEWAY_TIMEOUT,
        "turn_not_visible",
        f"{why}. Kafka has the turns, do not send them again: {kept}",
    )
