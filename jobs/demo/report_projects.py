"""The report's part about projects: what memory answered, before and after pivots, its pictures and its tables."""

from __future__ import annotations

from html import escape

from jobs.demo.project_questions import ProjectAnswer, ProjectRecalled
from jobs.demo.projects import ProjectsSeen, saved
from jobs.memory.project_report import counted_html, project_sections
from models.project.view import ProjectView


def projects_html(projects: ProjectsSeen, recalled: ProjectRecalled) -> str:
    """One article for each project; every text in it is escaped.

    Args:
        projects: As their events told of them until the end of the play.
        recalled: What was answered of one of them.
    """
    asked = recalled.app_id, recalled.project_id
    return "".join(
        _project(project, _answers(recalled) if name == asked else "")
        for name, project in sorted(projects.by_name.items())
    )


def _project(project: ProjectView, answers: str) -> str:
    items = saved(project)
    sections = "".join(f"<h4>{escape(title)}</h4>{content}" for title, content in project_sections(items))
    return (
        f"<article><h3>{escape(project.project_id)}</h3><small>{escape(project.app_id)}</small>{counted_html(items)}"
        f"{answers}{sections}</article>"
    )


def _answers(recalled: ProjectRecalled) -> str:
    wrong = "".join(f'<p class="bad">{escape(problem)}</p>' for problem in recalled.problems)
    rows = "".join(map(_answer, recalled.answers))
    return f"{wrong}<table><tr><th>question</th><th>as of</th><th>answer</th></tr>{rows}</table>"


def _answer(answer: ProjectAnswer) -> str:
    as_of = "now" if answer.at is None else f"{answer.when}, {answer.at:%H:%M:%S}"
    return (
        f"<tr><td>{escape(answer.query)} <small>{answer.milliseconds:.0f} ms</small></td><td>{escape(as_of)}</td>"
        f"<td>{escape(answer.said)}</td></tr>"
    )
