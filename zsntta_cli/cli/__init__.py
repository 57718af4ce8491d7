"""The command line: a command parses, builds settings, calls one library function, prints."""

from typing import Annotated

import typer

from zsntta_cli import __version__
from zsntta_cli.cli import cache, datasets
from zsntta_cli.cli.command import Command, Group
from zsntta_cli.cli.demo import demo
from zsntta_cli.cli.detection.detect import detect
from zsntta_cli.cli.encoders import encoders
from zsntta_cli.cli.extract import extract
from zsntta_cli.cli.results import records
from zsntta_cli.cli.results.board import board
from zsntta_cli.cli.results.paper import paper
from zsntta_cli.cli.results.plot import plot
from zsntta_cli.cli.results.report import report
from zsntta_cli.cli.simulate import simulate

app = typer.Typer(
    cls=Group,
    help="Zero-shot noisy test-time adaptation of CLIP: extract features once, replay streams.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"zsntta {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Tracebacks of errors.")] = False,
) -> None:
    pass


app.command(cls=Command)(extract)
app.command(cls=Command)(simulate)
app.command(cls=Command)(detect)
app.command(cls=Command)(paper)
app.command(cls=Command)(board)
app.command(cls=Command)(report)
app.command(cls=Command)(demo)
app.command(cls=Command)(plot)
app.command(cls=Command)(encoders)
app.add_typer(cache.app, name="cache")
app.add_typer(datasets.app, name="datasets")
app.add_typer(records.app, name="records")


def main() -> None:
    """The entry point."""
    app()
