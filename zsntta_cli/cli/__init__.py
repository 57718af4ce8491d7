"""The command line: a command parses, builds settings, calls one library function, prints."""

import functools
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer

from zsntta_cli import __version__
from zsntta_cli.cli.command import Command, Group

_PLACES = {
    "extract": "extract.extract",
    "simulate": "simulate.simulate",
    "run": "experiment.run",
    "detect": "detection.detect.detect",
    "paper": "results.paper.paper",
    "board": "results.board.board",
    "report": "results.report.report",
    "demo": "demo.demo",
    "plot": "results.plot.plot",
    "encoders": "datasets.encoders",
    "cache": "cache.app",
    "datasets": "datasets.app",
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
    single.command(cls=Command)(loaded)
    return typer.main.get_command(single)


class Zsntta(Group):
    """The program: its commands are loaded one by one."""

    def __init__(self, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values | {"commands": COMMANDS})


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


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Tracebacks of errors.")] = False,
) -> None:
    pass


def main() -> None:
    """The entry point."""
    app()
