"""Topic memory of one session: what it is about. Start reading at `conversation_topics`."""
