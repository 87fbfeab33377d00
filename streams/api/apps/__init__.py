"""App memory over HTTP."""
