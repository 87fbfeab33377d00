"""The shell: settings, transport, roles, sinks. Decides nothing; `models` does."""
