"""Turns and topics of sessions over HTTP."""
