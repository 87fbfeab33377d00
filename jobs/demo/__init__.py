"""`turntide demo`: everything on this machine, with conversations written for it, to be watched.

Read first: `run.py`, which tells the story in order. `conversations/` is what is said, `play.py` sends it, `watch.py`
reads what Turntide makes of it into `state.py` and `users.py`, which `view.py`, `report.py` and `timeline.py` draw;
`questions.py` asks memory, and `summary.py` judges. `policy.py` has the rules that it all runs under.

`conversations/project.toml` is apart: 250 turns of a project over four weeks, played hurried; `projects.py` keeps what
comes of it, and `project_questions.py` asks for it.
"""

from jobs.demo.command import demo

__all__ = ["demo"]
