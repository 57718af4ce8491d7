"""The command line: a command parses, builds settings, calls one library function, prints."""

import gc
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from zsntta_cli import __version__
from zsntta_cli.cli import cache, datasets
from zsntta_cli.cli.encoders import encoders
from zsntta_cli.cli.extract import demo, extract
from zsntta_cli.cli.simulate import simulate
from zsntta_cli.errors import ZsnttaError


class _Commands(TyperGroup):
    """All errors a user can cause become one line here, and nowhere else."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; exit with 1 on a ZsnttaError, with 130 on Ctrl-C."""
        try:
            return super().invoke(ctx)
        except ZsnttaError as error:
            if ctx.params.get("debug"):
                raise
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(1) from error
        except KeyboardInterrupt as error:
            resumable = ctx.invoked_subcommand in ("extract", "demo")
            kept = ": what was finished is kept; the same command resumes" if resumable else ""
            typer.echo(f"interrupted{kept}.", err=True)
            raise typer.Exit(130) from error


app = typer.Typer(
    cls=_Commands,
    help="Zero-shot noisy test-time adaptation of CLIP: extract features once, replay streams.",
    no_args_is_help=True,
    add_completion=False,
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


app.command()(extract)
app.command()(simulate)
app.command()(demo)
app.command()(encoders)
app.add_typer(cache.app, name="cache")
app.add_typer(datasets.app, name="datasets")


def main() -> None:
    """The entry point."""
    if "simulate" in sys.argv[1:3]:
        gc.disable()  # replays make no cycles, and looking for some takes a tenth of their time
    app()
