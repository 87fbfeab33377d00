"""User memory over HTTP."""
