"""Metrics of a role: its keyed state and recovery, and its process. Part of `models.metrics`, which has the whole.

CPU, memory, open files and the start time come beside these from Prometheus' client (`process_…`).
"""

from __future__ import annotations

from models.metrics.metric import counter, gauge, histogram

_RECOVERY_SECONDS = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)

STATE_METRICS = (
    gauge(
        "state_entries",
        "entries",
        "partition",
        means="Entries of state in memory.",
        do="Growing without end: sessions are not closed, check time-out and watermark.",
    ),
    gauge(
        "state_bytes",
        "bytes",
        "partition",
        means="Encoded size of the state in memory.",
        do="Growing faster than entries: a policy limit was raised.",
    ),
    counter(
        "changelog_bytes_total",
        "bytes",
        means="Bytes written to the changelog.",
        do="More than twice the turns' own bytes plus 1 KB each: look at what the policy keeps.",
    ),
    counter(
        "recovery_records_total",
        "records",
        means="Changelog records applied while recovering.",
        do="Far more than state entries: the changelog is not being compacted.",
    ),
    gauge(
        "recovery_remaining_records",
        "records",
        means="Changelog records still to be applied before the role is ready.",
        do="Not falling for minutes: read the event recovery_progress in the log and look at the brokers.",
    ),
    histogram(
        "recovery_seconds",
        "seconds",
        means="Time from assignment to ready.",
        do="Near the deadline: compact the changelog or spread partitions over more workers.",
        buckets=_RECOVERY_SECONDS,
    ),
    gauge(
        "ready",
        "0 or 1",
        means="1 when every assigned partition is recovered.",
        do="0 for minutes: read /readyz, it says why.",
    ),
    gauge(
        "kafka_silent_seconds",
        "seconds",
        means="For how long no broker has answered this worker; below 20 while one does. A role stays ready meanwhile.",
        do="Minutes: look at the brokers and the network, `turntide doctor --check broker`. Roles go on by themselves.",
    ),
    counter(
        "batches_refused_total",
        "batches",
        "reason",
        means="Fetched batches that the ledger did not admit; they come again.",
        do="Expected around deployments; all the time: workers miss their heartbeats.",
    ),
    counter(
        "rebalance_heals_total",
        "seeks",
        "partition",
        means="Seeks back to the last processed offset at an idle end.",
        do="Expected around deployments, see batches_refused_total.",
    ),
    gauge(
        "compaction_backlog_turns",
        "turns",
        "partition",
        means="Turns of users that an episode was asked for and that are in none yet: what the compaction of users' "
        "memories lags behind. Segments and topics are compacted by the turn that fills them and never lag.",
        do="Rising for minutes: the enrich role does not answer, look at its lag, then at llm_calls_total.",
    ),
)

PROCESS_METRICS = (
    gauge(
        "build_info",
        "1",
        "version",
        means="Always 1; the label says which release runs.",
        do="Two releases for longer than a roll-out takes: it is stuck.",
    ),
    gauge(
        "memory_limit_bytes",
        "bytes",
        means="Memory that the process may take: its container's limit, or else all of the machine's.",
        do="process_resident_memory_bytes near it: the process will be killed; raise the limit or add workers.",
    ),
    counter(
        "energy_joules_total",
        "joules",
        means="An estimate: CPU seconds of the process times telemetry.watts_per_core. Neither memory, disk nor the "
        "machine's idling is in it.",
        do="By turns_folded_total it is the energy of a turn; compare releases by it.",
    ),
    counter(
        "trace_spans_total",
        "spans",
        "result",
        means="Spans of traces: `exported`, or `failed` where the collector did not take them.",
        do="Failed: look at telemetry.otlp_endpoint and at the collector; nothing waits for it.",
    ),
)
