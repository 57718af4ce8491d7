"""Where a result goes: stdout, or a file that is absent or whole; and in which form."""

from pathlib import Path
from typing import Literal

import typer

from zsntta_cli.cli.command import misused
from zsntta_cli.report.forms import ENDINGS

Form = Literal["table", "markdown", "latex", "html", "json", "csv"]


def form_of(form: str | None, output: Path | None) -> str:
    """The form that is asked for, by its name or by the ending of a file.

    Raises:
        UsageError: these are two.
    """
    known = ENDINGS.get(output.suffix.lower()) if output else None
    if form and known not in (None, form):
        raise misused(f"--format is {form}, and the ending of --output {output} says {known}.")
    return form or known or "table"


def put(text: str, output: Path | None) -> None:
    """Write a result to a file, whole or not, or print it."""
    from zsntta_cli.files import write_whole

    if output:
        write_whole(output, text.encode())
    else:
        typer.echo(text, nl=False)
