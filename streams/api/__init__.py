"""HTTP: health, metrics and reading memory."""
