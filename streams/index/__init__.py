"""Vector stores behind the port of `streams.ports`."""
