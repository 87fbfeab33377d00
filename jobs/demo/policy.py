"""The rules that the demo runs under: the defaults, but for what would not be seen in so short a play."""

from __future__ import annotations

POLICY = """\
# The defaults, but a profile after every turn, so that the demo's view is lively.
version = "demo-2"

[profile]
every_turns = 1

# Topics fade in days; the play lasts twenty minutes of event time. So its clock is compressed: a minute for a day.
# And since people name twenty matters in weeks, not in minutes, topics decay above ten of them already.
[topics]
base_half_life = "PT1M"
max_half_life = "PT30M"
max_topics = 10
"""
COMPRESSED_CLOCK = "compressed clock for topics: a minute counts as a day, and above 10 topics, not 20, they decay"
"""What somebody who watches has to know of it."""
