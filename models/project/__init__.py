"""Project memory: conversations, episodes, long-term memories. Start reading at `fold`."""
