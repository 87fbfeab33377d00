"""`turntide demo`: everything on this machine, with conversations written for it, to be watched.

Read first: `run.py`, which tells the story in order. `conversations/` is what is said, `play.py` sends it, and
`watch.py` follows what Turntide makes of it. At the end `asking.py` asks memory over HTTP;
`questions.py` has what memory and archive are asked, and `summary.py` judges. `policy.toml` has the rules that it all
runs under. What is seen is the live page of the index role and the page of `turntide analyse report`.
"""

from jobs.demo.command import demo

__all__ = ["demo"]
