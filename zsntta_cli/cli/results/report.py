"""`zsntta report`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zsntta_cli.cli.command import say
from zsntta_cli.cli.options import FeaturesDir, Records
from zsntta_cli.cli.output import PAGES, form_of
from zsntta_cli.report.page import BASELINE, TITLE
from zsntta_cli.settings import FEATURES

if TYPE_CHECKING:
    from zsntta_cli.results.kept import Kept

_STDOUT = Path("-")
_SQLITE = b"SQLite format 3\0"  # how a store begins


def report(
    records: Annotated[
        list[Path] | None,
        typer.Argument(help="Exported records (JSON Lines) or stores. [the store]"),
    ] = None,
    store: Records = None,
    features_dir: FeaturesDir = FEATURES,
    output: Annotated[Path, typer.Option(help="Write to this file; '-': stdout.")] = Path(
        "report.html"
    ),
    title: Annotated[str, typer.Option(help="Of the page.")] = TITLE,
    baseline: Annotated[str, typer.Option(help="Method that gains are told from.")] = BASELINE,
) -> None:
    """Kept results as one HTML page: tables, paired tests, plots, a leaderboard; loads nothing."""
    from zsntta_cli.cli.results.repeat import repeat_command
    from zsntta_cli.files import write_whole
    from zsntta_cli.methods import check_method
    from zsntta_cli.paper.rows import reported
    from zsntta_cli.report.page.page import page

    check_method(baseline, "baseline")
    if output != _STDOUT:
        form_of(output, PAGES, default="html")
    kept = _kept(records or [], store, features_dir)
    made = page(kept, repeat_command, title, baseline, reported())
    for words in made.left_out:
        say(f"note: left out: {words}.", err=True)
    content = made.html.encode()
    if output == _STDOUT:
        typer.echo(made.html, nl=False)
        return
    write_whole(output, content)
    say(f"{output}: {made.runs:,} runs in {made.rows:,} rows, {len(content) / 1000:,.0f} kB")


def _kept(paths: list[Path], store: Path | None, features_dir: Path) -> "Iterator[Kept]":
    """Runs of all files that are named; of the store, where it is named or nothing else is."""
    from zsntta_cli.progress import ConsoleReporter
    from zsntta_cli.results.exchange import read_lines
    from zsntta_cli.results.keeping import Keeping

    if store is not None or not paths:
        yield from _stored(Keeping.beside(features_dir, store).path)
    for path in paths:
        yield from _stored(path) if _is_store(path) else read_lines(path, ConsoleReporter().note)


def _stored(path: Path) -> "Iterator[Kept]":
    from zsntta_cli.results.store import RecordStore

    with RecordStore(path) as opened:
        yield from opened.all()


def _is_store(path: Path) -> bool:
    """Whether a file begins as a store does; what cannot be read is for its reader to say."""
    from zsntta_cli.files import open_regular

    try:
        with open(open_regular(path), "rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False
