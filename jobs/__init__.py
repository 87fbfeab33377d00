"""The command line and all batch work."""
