"""Scorers of single turns: one file each behind the port `streams.ports.TurnScorer`."""
