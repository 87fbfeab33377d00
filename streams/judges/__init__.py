"""Judges of conversations with an alert: slower than the built-in judgement, and never waited for."""
