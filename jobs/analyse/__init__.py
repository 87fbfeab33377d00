"""Pattern mining and reports over the archive."""
