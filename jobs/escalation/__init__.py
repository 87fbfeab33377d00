"""Backtests and calibration of the escalation policy."""
