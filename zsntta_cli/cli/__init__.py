"""The command line: a command parses, builds settings, calls one library function, prints."""

import functools
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from zsntta_cli import __version__
from zsntta_cli.cli.command import HELP, Debugging, command, say, usage
from zsntta_cli.errors import SettingsError, ZsnttaError
from zsntta_cli.plugins import load_declared, load_script, refuse_while_loading

# The commands by what they are for: the place of each, and what it does in one line. A line imports
# the commands that it names; the page of all of them needs these lines alone.
COMMANDS = {
    "extract": (
        "Run", "extract.extract", "Encode the images and class names of data sets."
    ),
    "simulate": ("Run", "simulate.simulate", "Run methods on streams of cached features."),
    "run": ("Run", "experiment.run", "Run an experiment file and write its tables and figures."),
    "paper": (
        "Run", "paper.paper",
        "Reproduce the paper's tables and compare with its numbers.",
    ),
    "detect": (
        "Run", "detect.detect", "Find images that belong to none of your classes."
    ),
    "demo": ("Run", "demo.demo", "Compare methods offline, on the built-in sets."),
    "report": ("Inspect", "report.report", "Write kept results to an HTML page."),
    "plot": ("Inspect", "report.plot", "Draw a figure of kept results as PDF, SVG, PNG or CSV."),
    "cite": ("Inspect", "report.cite", "Print BibTeX for methods, sets and encoders."),
    "encoders": ("Inspect", "available.encoders", "List encoders and download their weights."),
    "datasets": (
        "Inspect", "available.datasets", "List, show, download and verify known data sets."
    ),
    "methods": ("Inspect", "available.methods", "List, show and check methods."),
    "cache": ("Manage", "cache.app", "List, check, split, import, export and share features."),
    "records": ("Manage", "records.app", "List, export, import and remove kept results."),
}  # fmt: skip


_INTERRUPTED = 130  # an exit code


def program(words: Sequence[str] | None = None) -> Any:
    """The program with the commands that a line names; if it names none, all are only listed.

    Without a line, all commands are loaded.
    """
    if words is None:
        return _program(tuple(COMMANDS))
    typed = {*words, *os.environ.get("COMP_WORDS", "").split()}  # of a shell that completes
    return _program(tuple(filter(typed.__contains__, COMMANDS)))


@functools.cache
def _program(names: tuple[str, ...]) -> Any:
    app = typer.Typer(
        help="Zero-shot noisy test-time adaptation of CLIP: extract features, replay streams.",
        rich_markup_mode="rich", context_settings=HELP, no_args_is_help=True,
        pretty_exceptions_enable=False,
    )  # fmt: skip
    app.callback()(_main)
    for name in names or COMMANDS:
        panel, place, about = COMMANDS[name]
        if not names:
            app.command(name, help=about, rich_help_panel=panel)(lambda: None)
            continue
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


def _main(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of any error."),
    plugin: list[Path] | None = typer.Option(
        None, "--plugin", metavar="FILE.py",
        help="Script that adds methods or data sets (docs/extending.md).",
    ),
) -> None:  # fmt: skip
    del version  # its callback does it
    Debugging.is_on = debug
    for script in plugin or ():  # before a command looks at what they add
        load_script(script)


def main(words: Sequence[str] | None = None) -> None:
    """Run a command line, by default the one that was typed.

    Raises:
        SystemExit: the command has ended; it carries the exit code.
        SettingsError: a script runs a line while it is loaded.
    """
    line = sys.argv[1:] if words is None else [*words]
    refuse_while_loading()
    load_declared(lambda note: say(f"note: {note}", err=True))
    try:
        code = program(line).main(line, prog_name="zsntta", standalone_mode=False)
        if code == _INTERRUPTED:  # before a command began, of which Typer says nothing
            say("interrupted.", err=True)
        sys.exit(code)
    except typer.TyperException as error:
        if message := usage(error, COMMANDS):
            typer.echo(message, err=True)
            sys.exit(2)
    except ZsnttaError as error:  # while the line was read
        if Debugging.is_on:
            raise
        say(f"error: {error}", err=True)
        sys.exit(2 if isinstance(error, SettingsError) else 1)
