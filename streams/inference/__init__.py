"""Embedders behind the port of `streams.ports`."""
