"""Every metric, as data: what it counts, what it means and what to do about it.

Names carry their unit and no prefix; the shell exports them as `turntide_<name>`. Labels come from a closed list: an
id of a session, user or app is never one, since each value is a time series for ever (and ids are personal data).
`deploy/metrics.md` is made of this (`turntide ops metrics`). Read first: `metric.py`, then `flow.py`.
"""

from __future__ import annotations

from models.metrics.flow import FOLDING, FURTHER_STAGES, LAG, STAGES
from models.metrics.memory import APP_METRICS, PROJECT_METRICS, TOPIC_METRICS, USER_METRICS
from models.metrics.metric import Metric, MetricKind
from models.metrics.risk import JUDGE_METRICS, RISK_METRICS
from models.metrics.serving import LLM_METRICS, SERVING_METRICS
from models.metrics.state import PROCESS_METRICS, STATE_METRICS
from models.metrics.stores import STORE_METRICS

__all__ = ["FURTHER_STAGES", "LABELS", "METRICS", "METRIC_OF", "PARTS", "STAGES", "Metric", "MetricKind"]

LABELS = frozenset(
    {
        *("stage", "partition", "topic", "sink", "service", "route"),
        *("reason", "severity", "cause", "mode", "result", "status", "direction", "version"),
    }
)
"""The only label names there are; each takes few values."""

PARTS: dict[str, tuple[Metric, ...]] = {
    "Records on their way": (*FOLDING, *LAG),
    "Risk and alerts": RISK_METRICS,
    "Judge": JUDGE_METRICS,
    "Conversation topics": TOPIC_METRICS,
    "Memory of users": USER_METRICS,
    "Memories of apps": APP_METRICS,
    "Memory of projects": PROJECT_METRICS,
    "State and recovery": STATE_METRICS,
    "Index, archive, sinks": STORE_METRICS,
    "Language models": LLM_METRICS,
    "HTTP": SERVING_METRICS,
    "The process": PROCESS_METRICS,
}
"""All of them, as they are shown."""

METRICS: tuple[Metric, ...] = tuple(metric for part in PARTS.values() for metric in part)
METRIC_OF: dict[str, Metric] = {metric.name: metric for metric in METRICS}
"""By name."""
