"""Common parts of commands: output, progress, child processes, sending, and asking a running role."""
