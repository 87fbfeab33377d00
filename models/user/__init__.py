"""User memory in three tiers: turns at hand, episodes, facts. Start reading at `fold`."""
