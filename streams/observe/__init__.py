"""Telemetry of the roles: metrics, logs, traces."""
