"""What commands share: output, progress, child processes, sending, and asking a running role."""
