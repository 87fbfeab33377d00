"""`turntide ops monitoring`: dashboards, rules and runbooks in step with the catalogue of metrics."""

from pathlib import Path

import typer

from jobs.cli import examples, group
from jobs.operate.monitoring.rules import INDEX, OPERATORS, RUNBOOKS, for_the_operator, index, read
from jobs.shared.generated_files import DirectoryOption, differing, write_files
from jobs.shared.output import OutputFormat, OutputOption, Printer
from models.errors import ConfigurationError

try:
    from jobs.operate.monitoring.boards import BOARDS, render
    from jobs.operate.monitoring.checks import CheckFinding, findings
except ModuleNotFoundError as error:
    raise ConfigurationError(
        f"`turntide ops monitoring` needs the Python package `{error.name}`: install `turntide[monitoring]`"
    ) from error

_EXIT_FINDINGS = 1
_DIRECTORY = Path("deploy")
_DASHBOARDS = Path("grafana") / "dashboards"

app = group(
    "Write or check the files for monitoring: Grafana's dashboards and the index of the runbooks are generated, rules "
    "and runbooks are written by hand. All are checked against the metrics (`turntide ops metrics`)."
)


@app.command(
    epilog=examples("turntide ops monitoring write", "turntide ops monitoring write --directory ops --output json")
)
def write(directory: DirectoryOption = _DIRECTORY, output: OutputOption = OutputFormat.TABLE) -> None:
    """Write the dashboards, the index of the runbooks and the rules for Kubernetes where they differ."""
    write_files(directory, documents(directory), "monitoring", output, only_json_of=_DASHBOARDS)


@app.command(epilog=examples("turntide ops monitoring check", "turntide ops monitoring check --output json | jq '.[]'"))
def check(directory: DirectoryOption = _DIRECTORY, output: OutputOption = OutputFormat.TABLE) -> None:
    """Exit with code 1 if the files are inconsistent.

    Findings are an unknown metric or label, an alert without runbook or panel, a metric that no panel shows, and a file
    that `write` would change.
    """
    found = [
        *findings(read(directory), BOARDS, directory),
        *(
            CheckFinding(name, f"{state}: run `turntide ops monitoring write`")
            for name, state in drift(directory).items()
        ),
    ]
    printed = Printer(output)
    printed.rows("monitoring", [finding._asdict() for finding in found])
    if found:
        raise typer.Exit(_EXIT_FINDINGS)
    printed.message("metrics, rules, dashboards and runbooks are consistent")


def documents(directory: Path) -> dict[str, str]:
    """Every generated file: its path below the folder, and its text."""
    boards = {str(_DASHBOARDS / f"{board.uid}.json"): render(board, f"deploy/{RUNBOOKS}") for board in BOARDS}
    pages = {f"{RUNBOOKS}/{INDEX}": index(directory, read(directory).alerts)}
    return {**boards, **pages, str(OPERATORS): for_the_operator(directory)}


def drift(directory: Path) -> dict[str, str]:
    """Files that differ from what the code says: path below the folder -> missing, changed or left over."""
    return differing(directory, documents(directory), only_json_of=_DASHBOARDS)
