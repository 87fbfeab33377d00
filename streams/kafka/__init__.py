"""Micro-batch transport, state tables with changelog, ordered effects."""
