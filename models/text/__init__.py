"""Deterministic text features: patterns, keywords, summaries."""
