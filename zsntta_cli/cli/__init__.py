"""The command line: a command parses, builds settings, calls one library function, prints."""

import functools
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from zsntta_cli import __version__, plugins
from zsntta_cli.cli.line.command import HELP, Debugging, command, end, say, usage
from zsntta_cli.errors import SettingsError

# Where the commands are, by what they are for; a line imports those that it names, help all.
COMMANDS = {
    "extract": ("Study", "extract.extract"),
    "simulate": ("Study", "simulate.simulate"),
    "run": ("Study", "experiment.run"),
    "paper": ("Study", "results.paper.paper"),
    "detect": ("Study", "detection.detect.detect"),
    "demo": ("Study", "demo.demo"),
    "report": ("See", "results.report.report"),
    "plot": ("See", "results.plot.plot"),
    "cite": ("See", "cite.cite"),
    "encoders": ("See", "datasets.encoders"),
    "datasets": ("See", "datasets.app"),
    "methods": ("See", "methods.app"),
    "cache": ("Keep", "cache.app"),
    "records": ("Keep", "results.records.app"),
}


def program(words: Sequence[str] = ()) -> Any:
    """The program with the commands that a line names, or with all."""
    return _program(tuple(filter(words.__contains__, COMMANDS)) or tuple(COMMANDS))


@functools.cache
def _program(names: tuple[str, ...]) -> Any:
    app = typer.Typer(
        help="Zero-shot noisy test-time adaptation of CLIP: extract features once, replay streams.",
        rich_markup_mode="rich", context_settings=HELP, no_args_is_help=True,
        pretty_exceptions_enable=False,
    )  # fmt: skip
    app.callback()(_main)
    for name in names:
        panel, place = COMMANDS[name]
        module, _, attribute = place.rpartition(".")
        loaded = getattr(import_module(f"zsntta_cli.cli.{module}"), attribute)
        if isinstance(loaded, typer.Typer):
            app.add_typer(loaded, name=name, rich_help_panel=panel)
        else:
            command(app, name, panel)(loaded)
    return typer.main.get_command(app)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"zsntta {__version__}")
        raise typer.Exit


def _load_scripts(scripts: list[Path] | None) -> None:
    """Load scripts of the user's own, before a command looks at what they add."""
    for script in scripts or ():
        try:
            plugins.load_script(script)
        except SettingsError as error:
            if "--debug" in sys.argv or plugins.is_loading():
                raise
            end(f"error: {error}", 2, error)


def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    plugin: Annotated[
        list[Path] | None,
        typer.Option(
            "--plugin",
            callback=_load_scripts,
            metavar="FILE.py",
            help="A script that adds methods or data sets (docs/extending.md).",
        ),
    ] = None,
) -> None:
    del version, plugin  # their callbacks do it
    Debugging.is_on = debug


def main(words: Sequence[str] | None = None) -> None:
    """Run a line, by default the one that was typed.

    Raises:
        SystemExit: the line has ended, with its exit code.
    """
    line = sys.argv[1:] if words is None else [*words]
    plugins.load_declared(lambda note: say(f"note: {note}", err=True))
    try:
        sys.exit(program(line).main(line, prog_name="zsntta", standalone_mode=False))
    except typer.TyperException as error:
        if said := usage(error, COMMANDS):
            typer.echo(said, err=True)
            sys.exit(2)
