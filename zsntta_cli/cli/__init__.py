"""The command line: a command parses, builds settings, calls one library function, prints."""

import functools
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from zsntta_cli import __version__, plugins
from zsntta_cli.cli.line.command import Command, Group, end, say
from zsntta_cli.cli.line.pages import COMMAND_GROUPS
from zsntta_cli.errors import PluginError

_SUMMARY = 60  # characters of a command's summary, which is cut at none of 80 columns
_PLACES = {
    "extract": "extract.extract",
    "simulate": "simulate.simulate",
    "run": "experiment.run",
    "detect": "detection.detect.detect",
    "paper": "results.paper.paper",
    "report": "results.report.report",
    "demo": "demo.demo",
    "plot": "results.plot.plot",
    "encoders": "datasets.encoders",
    "cache": "cache.app",
    "datasets": "datasets.app",
    "methods": "methods.app",
    "cite": "cite.cite",
    "records": "results.records.app",
}


class Commands(Mapping[str, Any]):
    """All commands by their names; one is imported, and its options are made, when it is wanted."""

    def __getitem__(self, name: str) -> Any:
        return _load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)


COMMANDS = Commands()


@functools.cache
def _load(name: str) -> Any:
    module, _, attribute = _PLACES[name].rpartition(".")
    loaded = getattr(import_module(f"zsntta_cli.cli.{module}"), attribute)
    if isinstance(loaded, typer.Typer):
        return typer.main.get_command(loaded)
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(cls=getattr(loaded, "command_class", Command))(loaded)
    return typer.main.get_command(single)


class Zsntta(Group):
    """The program: its commands are loaded one by one."""

    def __init__(self, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values | {"commands": COMMANDS})

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The commands under the headings that say what they are for."""
        del ctx
        for heading, names in COMMAND_GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(n, COMMANDS[n].get_short_help_str(_SUMMARY)) for n in names])

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read `zsntta help simulate` as `zsntta simulate -h`."""
        return super().parse_args(ctx, [*args[1:], "-h"] if args[:1] == ["help"] else args)


app = typer.Typer(
    cls=Zsntta,
    help="Zero-shot noisy test-time adaptation of CLIP: extract features once, replay streams.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"zsntta {__version__}")
        raise typer.Exit


def _load_scripts(scripts: list[Path] | None) -> None:
    """Load scripts of the user's own, before options are made of what they add."""
    for script in scripts or ():
        try:
            plugins.load_script(script)
        except PluginError as error:
            if "--debug" in sys.argv or plugins.is_loading():
                raise
            end(f"error: {error}", 2, error)


@app.callback()
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
    if debug:
        _tell_what_is_logged()


def _tell_what_is_logged() -> None:
    """Show what the library logs, as notes: of kept machine code that is not used."""
    import logging

    class Notes(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say(f"note: {record.getMessage()}", err=True)

    logger = logging.getLogger("zsntta_cli")
    logger.handlers = [Notes()]
    logger.setLevel(logging.INFO)


def main() -> None:
    """The entry point."""
    app()
