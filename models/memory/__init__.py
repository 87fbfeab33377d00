"""What is remembered of a session: buffer, segments, vectors."""
