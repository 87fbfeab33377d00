"""Project memory over HTTP."""
