"""How far behind each sink is."""

from __future__ import annotations

from collections.abc import Mapping

from streams.observe.telemetry import metrics


class SinkLags:
    """Shows them by sink, and the largest by partition as every role does."""

    def __init__(self) -> None:
        self._by_sink: dict[str, dict[int, int]] = {}

    def show(self, sink: str, lags: Mapping[int, int]) -> None:
        """Show alert changes that a sink has not taken.

        Args:
            sink: Its name.
            lags: By partition, all that it has; those that it had before are another worker's now.
        """
        for gone in self._by_sink.get(sink, {}).keys() - lags.keys():
            metrics.forget_partition(gone)
        self._by_sink[sink] = dict(lags)
        for partition, lag in lags.items():
            metrics.gauge("sink_lag_records", sink=sink, partition=str(partition)).set(lag)
            furthest = max(each.get(partition, 0) for each in self._by_sink.values())
            metrics.gauge("offset_lag_records", partition=str(partition)).set(furthest)
