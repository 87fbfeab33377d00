"""Erasures over HTTP."""
