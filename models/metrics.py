"""Every metric, as data: what it counts, what it means and what to do about it.

Names carry their unit and no prefix; the shell exports them as `turntide_<name>`. Labels come from a closed list: an
id of a session, user or app is never one, since each value is a time series for ever (and ids are personal data).
"""

from __future__ import annotations

from models.app_metrics import APP_METRICS
from models.judge_metrics import JUDGE_METRICS
from models.metric import Kind, Metric
from models.metric import counter as _counter
from models.metric import gauge as _gauge
from models.metric import histogram as _histogram
from models.project_metrics import PROJECT_METRICS
from models.risk_metrics import RISK_METRICS

__all__ = ["LABELS", "METRICS", "METRIC_OF", "STAGES", "Kind", "Metric"]

STAGES = ("decode", "embed", "score", "fold", "outputs", "state")
"""Values of the label `stage`: where a micro-batch spends its time."""

LABELS = frozenset({"stage", "partition", "reason", "severity", "cause", "mode", "result", "sink", "topic"})
"""The only label names there are; each takes few values."""

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_RECOVERY_SECONDS = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_TURNS = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500)


_FOLDING = (
    _counter(
        "turns_folded_total",
        "turns",
        means="Turns folded into session state.",
        do="Flat while producers send: look at the lag and at readiness.",
    ),
    _histogram(
        "batch_turns",
        "turns",
        means="Records in one micro-batch of one partition.",
        do="At the limit all the time: the role is behind, add workers.",
        buckets=_TURNS,
    ),
    _histogram(
        "stage_seconds",
        "seconds",
        "stage",
        means="Time of one micro-batch in each stage.",
        do="The stage that grew is the cause: outputs or state point to the broker, embed and score to the CPU.",
        buckets=_SECONDS,
    ),
    _counter(
        "fold_errors_total",
        "errors",
        means="Folds that raised; each became a dead letter or stopped the role.",
        do="Any at all is a defect: read the dead letter of that time and replay it.",
    ),
    _counter(
        "dead_letters_total",
        "records",
        "reason",
        means="Input that could not be used.",
        do="Ask the producer about that reason; the records keep their bytes and place.",
    ),
)

_LAG = (
    _gauge(
        "event_time_lag_seconds",
        "seconds",
        "partition",
        means="Now minus the partition's watermark, when there was input.",
        do="Rising with the offset lag: add workers. Rising alone: producers send old turns.",
    ),
    _gauge(
        "offset_lag_records",
        "records",
        "partition",
        means="Records in the log that are not processed yet.",
        do="Rising for minutes: add workers, or look for the stage that grew.",
    ),
)

_TOPICS = (
    _counter(
        "topic_changes_total",
        "changes",
        "cause",
        means="Changes of conversation topics: started, returned, compacted, unpacked, merged, evicted and others.",
        do="Hardly any returned beside started: the similarity threshold is too high for this embedder, see "
        "`turntide eval topics`. Evicted as often as started: topics do not last, look at the half-lives.",
    ),
    _counter(
        "topic_history_bytes_total",
        "bytes",
        means="JSON of the messages that compactions of topics packed.",
        do="Compare with topic_packed_bytes_total: that by this is the ratio of packing.",
    ),
    _counter(
        "topic_packed_bytes_total",
        "bytes",
        means="The same messages, packed.",
        do="More than half of topic_history_bytes_total: messages are short or all unlike; the codec deflate packs "
        "such ones better.",
    ),
)

_USERS = (
    _counter(
        "fact_changes_total",
        "changes",
        "cause",
        means="Changes of facts of users: stored, updated, confirmed, retracted, evicted.",
        do="Updated as often as stored: rules take passing remarks for facts, see `turntide eval facts`.",
    ),
    _counter(
        "episodes_total",
        "episodes",
        means="Episodes that turns of users became.",
        do="Flat while turns are folded: the enrich role does not answer, look at its lag.",
    ),
    _counter(
        "episode_turn_tokens_total",
        "tokens",
        means="Tokens of the turns that became episodes.",
        do="By episode_tokens_total: how much shorter a context is.",
    ),
    _counter(
        "episode_tokens_total",
        "tokens",
        means="Tokens of the summaries that stand for them.",
        do="Near episode_turn_tokens_total: turns are short, lower users.summary_sentences.",
    ),
    _counter(
        "requests_answered_total",
        "requests",
        "result",
        means="Requests of the memory role: `answered` as wished; `extractive` (episodes), `empty` (facts) or `failed` "
        "(memories of apps) where the language model failed.",
        do="Hardly any answered while a model is configured: `turntide doctor`, then the log of the enrich role.",
    ),
)

_STATE = (
    _gauge(
        "state_entries",
        "entries",
        "partition",
        means="Entries of state in memory.",
        do="Growing without end: sessions are not closed, check time-out and watermark.",
    ),
    _gauge(
        "state_bytes",
        "bytes",
        "partition",
        means="Encoded size of the state in memory.",
        do="Growing faster than entries: a policy limit was raised.",
    ),
    _counter(
        "changelog_bytes_total",
        "bytes",
        means="Bytes written to the changelog.",
        do="More than twice the turns' own bytes plus 1 KB each: look at what the policy keeps.",
    ),
    _counter(
        "recovery_records_total",
        "records",
        means="Changelog records applied while recovering.",
        do="Far more than state entries: the changelog is not being compacted.",
    ),
    _gauge(
        "recovery_remaining_records",
        "records",
        means="Changelog records still to be applied before the role is ready.",
        do="Not falling for minutes: read the event recovery_progress in the log and look at the brokers.",
    ),
    _histogram(
        "recovery_seconds",
        "seconds",
        means="Time from assignment to ready.",
        do="Near the deadline: compact the changelog or spread partitions over more workers.",
        buckets=_RECOVERY_SECONDS,
    ),
    _gauge(
        "ready",
        "0 or 1",
        means="1 when every assigned partition is recovered.",
        do="0 for minutes: read /readyz, it says why.",
    ),
    _counter(
        "batches_refused_total",
        "batches",
        "reason",
        means="Fetched batches that the ledger did not admit; they come again.",
        do="Expected around deployments; all the time: workers miss their heartbeats.",
    ),
    _counter(
        "rebalance_heals_total",
        "seeks",
        "partition",
        means="Seeks back to the last processed offset at an idle end.",
        do="Expected around deployments, see batches_refused_total.",
    ),
)

_STORES = (
    _gauge(
        "index_points",
        "points",
        means="Points in the vector store.",
        do="Compare with turns folded; a gap means the index role is behind.",
    ),
    _counter(
        "archive_rows_total",
        "rows",
        "topic",
        means="Rows landed in the archive.",
        do="Flat while the lag grows: look at the archive role's log.",
    ),
    _counter(
        "archive_files_total",
        "files",
        "topic",
        means="Parquet files landed.",
        do="Many small ones: raise archive.flush_age or merge more often.",
    ),
    _counter(
        "archive_bytes_total",
        "bytes",
        "topic",
        means="Bytes of the Parquet files landed.",
        do="For planning disk space.",
    ),
    _gauge(
        "archive_lag_records",
        "records",
        "topic",
        "partition",
        means="Records in the log that are not in the archive yet.",
        do="Rising for minutes: the disk or the catalog is slow.",
    ),
    _gauge(
        "erasures_pending",
        "erasures",
        means="Erasures that are asked for and not proved, as the archive worker sees it that carries them out.",
        do="Above zero for an hour: the archive role's log names the role it waits for, `turntide erase --status` too.",
    ),
    _counter(
        "sink_deliveries_total",
        "alerts",
        "sink",
        "result",
        means="Alerts handed to each sink, by `delivered` or `failed`.",
        do="Failures: look at the receiver; alerts stay on the topic and are tried again.",
    ),
)

_CONTEXT = (
    _counter(
        "contexts_total",
        "prompts",
        "result",
        means="Prompts put together for which memories of the app were wanted: `with_memories` or `without`; the first "
        "by both is the injection rate (seed 003).",
        do="Nearly all without: conversations end without anything to remember, or callers name another app than "
        "producers do.",
    ),
)

_MEMORIES = (*_USERS, *APP_METRICS, *PROJECT_METRICS)
METRICS: tuple[Metric, ...] = (
    *(*_FOLDING, *_LAG, *RISK_METRICS, *JUDGE_METRICS, *_TOPICS),
    *(*_MEMORIES, *_STATE, *_STORES, *_CONTEXT),
)
METRIC_OF: dict[str, Metric] = {metric.name: metric for metric in METRICS}
"""By name."""
