"""Bytes and events: the codec of records, their headers, what arrives, and when bad input is a flood."""
