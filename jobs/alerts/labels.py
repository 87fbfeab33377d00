"""Labels: whether an alert was right, or whether a session escalated that raised none. Back-tests measure by them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from aiokafka.structs import ConsumerRecord

from jobs.shared.session_app import session_meant
from models.errors import ConfigurationError
from models.events import AlertChanged, AlertLabelled, SessionErased
from models.events.topics import TURNS
from models.policy import Policy
from models.wire.envelope import tag_of
from streams.inference.intake import decode
from streams.kafka.client import read_to_end
from streams.settings import Settings
from streams.wiring import written_policy

_TAG, _ERASED = tag_of(AlertLabelled).encode(), tag_of(SessionErased).encode()


def label_of_session(
    settings: Settings, session_id: str, app_id: str, *, escalating: bool, reason: str, by: str
) -> tuple[AlertLabelled, int]:
    """A label of a session itself, whether or not it raised an alert: it names none. With its partition of `turns.v1`.

    Raises:
        ConfigurationError: The archive has no such session (one that was erased is none), or several apps have one.
    """
    from streams.archive.catalog import paths_of, reading
    from streams.archive.inputs import apps_of, stands_on

    with reading(paths_of(settings)) as lake:
        session = session_meant(session_id, app_id, apps_of(lake, session_id))
        partition = stands_on(lake, session)
    if partition is None:
        raise ConfigurationError(
            f"the archive has no session {session_id} of app {session.app_id}: nothing was labelled. `turntide query "
            '"FROM sessions"` lists sessions'
        )
    return AlertLabelled(
        session_id=session_id,
        app_id=session.app_id,
        timestamp=datetime.now(UTC),
        alert_id="",
        escalating=escalating,
        reason=reason,
        by=by,
    ), partition


async def erased_since(settings: Settings, alerts: Iterable[AlertChanged]) -> set[str]:
    """Ids of those alerts whose session was erased after them; their partitions of `turns.v1` are read.

    Raises:
        ConfigurationError: The topic is missing.
        StoreUnavailable: Kafka does not answer.
    """
    by_partition: defaultdict[int, list[AlertChanged]] = defaultdict(list)
    for alert in alerts:
        by_partition[alert.source.partition].append(alert)
    topic, policy = TURNS.full_name(settings.topic_prefix), written_policy(settings)
    found: set[str] = set()
    for partition, here in by_partition.items():
        async for record in read_to_end(settings.kafka, topic, only=partition):
            found |= erased_by([record], here, policy)
    return found


def erased_by(records: Iterable[ConsumerRecord], alerts: Sequence[AlertChanged], policy: Policy) -> set[str]:
    """Ids of those alerts of a partition whose session one of these records of it erases, after the alert."""
    candidates = [record for record in records if _ERASED in (record.value or b"")]
    erased = [each for each in decode(candidates, policy).arrivals if isinstance(each.event, SessionErased)]
    return {
        alert.alert_id
        for alert in alerts
        for each in erased
        if each.event.session_id == alert.session_id
        and each.event.app_id in {"", alert.app_id}
        and each.position.offset > alert.source.offset
    }


async def latest_labels(settings: Settings) -> dict[str, AlertLabelled]:
    """The latest label of each alert, by alert id. All of `turns.v1` is read: labels stand among the turns.

    Raises:
        ConfigurationError: The topic is missing.
        StoreUnavailable: Kafka does not answer.
    """
    found: dict[str, AlertLabelled] = {}
    policy = written_policy(settings)
    async for record in read_to_end(settings.kafka, TURNS.full_name(settings.topic_prefix)):
        for label in labels_in([record], policy):
            found[label.alert_id] = label
    return found


def labels_in(records: Iterable[ConsumerRecord], policy: Policy) -> list[AlertLabelled]:
    """The labels among records of `turns.v1`, in their order; what intake refuses is none."""
    # Few records hold one: the others are not decoded.
    candidates = [record for record in records if _TAG in (record.value or b"")]
    return [each.event for each in decode(candidates, policy).arrivals if isinstance(each.event, AlertLabelled)]


def described(label: AlertLabelled | None) -> dict[str, object]:
    """A label in the columns beside its alert's; empty ones without a label."""
    return {
        "escalating": None if label is None else label.escalating,
        "label_reason": label and label.reason,
        "labelled_by": label and label.by,
        "labelled_at": label and label.timestamp.isoformat(),
    }


def explained(label: AlertLabelled) -> str:
    """A label in a line below its alert.

    >>> at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    >>> explained(AlertLabelled(session_id="s", timestamp=at, alert_id="a", escalating=False, reason="homework"))
    '  label    false alarm: homework (2026-03-01)'
    """
    said = "escalating" if label.escalating else "false alarm"
    reason = f": {label.reason}" if label.reason else ""
    by = f"{label.by}, " if label.by else ""
    return f"  label    {said}{reason} ({by}{label.timestamp:%Y-%m-%d})"
