"""Alert sinks behind the port of `streams.ports`."""
