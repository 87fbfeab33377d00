"""Metrics of the process itself. Part of `models.metrics`, which has the whole.

CPU, memory, open files and the start time come beside these from Prometheus' client (`process_…`).
"""

from __future__ import annotations

from models.metrics.metric import counter, gauge

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
