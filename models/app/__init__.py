"""App memory: at most ten memories of a space. Start reading at `fold`."""
