"""Facts a user states about themselves, found without an LLM. Start reading at `extraction.py`."""
