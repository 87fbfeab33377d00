"""`turntide demo`: everything on this machine, with conversations written for it, to be watched.

Read first: `run.py`, which tells the story in order. `conversations/` is what is said, `play.py` sends it, `watch.py`
reads what Turntide makes of it into `state.py`, `users.py` and `spaces.py`; `questions.py` asks memory, and
`summary.py` judges. What is seen is the live page of the index role and, at the end, the page of `turntide report`.
`policy.py` has the rules that it all runs under.

`conversations/project.toml` is apart: 250 turns of a project over four weeks, played hurried; `project_questions.py`
asks for what comes of it.
"""

from jobs.demo.command import demo

__all__ = ["demo"]
