"""Alerts to a Slack channel by the Web API: a message an alert, and what follows of it in its thread."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from models.errors import StoreUnavailable
from models.events import AlertChanged
from models.risk.telling import ToldAlert
from models.wire.codec import UNDECODABLE
from streams.notify.delivery import Poster
from streams.notify.forms import Tell
from streams.ports import NO_TRACE_IDS

API_PATH = "/chat.postMessage"
MOST_THREADS = 10_000
_COLOURS = {"warning": "#d97706", "critical": "#b91c1c"}
_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class SlackAnswer(Struct, frozen=True):
    """What Slack says, with status 200, of what it took or not."""

    ok: bool
    ts: str = ""
    error: str = ""


def slack_message(alert: AlertChanged, told: ToldAlert, channel: str, thread: str | None) -> dict[str, Any]:
    """A message in blocks; long attachments Slack folds by itself, so why, in log-odds, is one.

    `thread`: time stamp of the alert's first message; an alert that grew worse, or woke, is shown in the channel too.
    """
    blocks: list[dict[str, Any]] = [_section(f"*{_plain(told.sentence)}*")]
    if told.next_step:
        blocks.append(_section(_plain(told.next_step)))
    if told.link:
        text = {"type": "plain_text", "text": "Open session"}
        blocks.append({"type": "actions", "elements": [{"type": "button", "text": text, "url": told.link}]})
    attachment = {"color": _COLOURS[alert.severity], "text": "\n".join(map(_plain, told.grounds))}
    message = {"channel": channel, "text": _plain(told.sentence), "blocks": blocks, "attachments": [attachment]}
    metadata = {"event_type": "turntide_alert", "event_payload": {"event_id": alert.id, "alert_id": alert.alert_id}}
    threaded = {} if thread is None else {"thread_ts": thread, "reply_broadcast": alert.cause in {"worsened", "woken"}}
    return message | {"metadata": metadata} | threaded


class SlackSink:
    """Threads are known while the role runs: after a restart the next change of an alert begins a new one."""

    name = "slack"

    def __init__(self, poster: Poster, tell: Tell, *, token: str, channel: str) -> None:
        self._poster = poster
        self._tell = tell
        self._headers = {"authorization": f"Bearer {token}", "content-type": "application/json; charset=utf-8"}
        self._channel = channel
        self._threads: dict[str, str] = {}

    async def deliver(self, alerts: Sequence[AlertChanged], trace_ids: Mapping[str, str] = NO_TRACE_IDS) -> None:  # noqa: ARG002
        """Deliver each.

        Raises:
            StoreUnavailable: One was not delivered; those before it were.
        """
        for alert in alerts:
            message = slack_message(alert, self._tell(alert), self._channel, self._threads.get(alert.alert_id))
            said = await self._poster.post(msgspec.json.encode(message), self._headers)
            try:
                answer = msgspec.json.decode(said, type=SlackAnswer)
            except UNDECODABLE:
                answer = SlackAnswer(ok=False, error="what answers is not Slack's API")
            if not answer.ok:
                raise StoreUnavailable(
                    f"slack did not take an alert ({answer.error}): check notify.slack_token and notify.slack_channel, "
                    "and that the bot is in the channel; then `turntide alerts test --sink slack`"
                )
            self._threads.setdefault(alert.alert_id, answer.ts)
            if len(self._threads) > MOST_THREADS:
                del self._threads[next(iter(self._threads))]

    async def close(self) -> None:
        """Release connections."""
        await self._poster.close()


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def _plain(text: str) -> str:
    """As Slack shows it as it is: ids of producers are no markup."""
    return text.translate(_ESCAPED)
