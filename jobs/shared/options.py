"""Options that several commands share, each declared once."""

from typing import Annotated

import typer

from jobs.shared.output import OutputFormat

OutputOption = Annotated[OutputFormat, typer.Option("--output", help="How the result is printed.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
UrlOption = Annotated[
    str | None, typer.Option("--url", help="Where the index or api role answers; none: as the settings say.")
]
TokenOption = Annotated[
    str, typer.Option("--token-env", help="Environment variable with a token of http.tokens; may be unset.")
]
TOKEN_VARIABLE = "TURNTIDE_TOKEN"  # noqa: S105 - the name of a variable
AppArgument = Annotated[str, typer.Argument(metavar="APP", help="Id of the app.")]
ProjectArgument = Annotated[str, typer.Argument(metavar="PROJECT", help="Id of the project.")]
WithoutDamageOption = Annotated[
    bool, typer.Option("--without-damage", help="Leave out the days whose files are damaged.")
]
FilesOption = Annotated[
    bool, typer.Option("--files", help="Let statements read and write other files than the archive's.")
]
