"""`zsntta report`: kept results as one page."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from zsntta_cli.cli.command import say
from zsntta_cli.cli.options import StoreOptions, argument, option
from zsntta_cli.cli.output import PAGES, form_of, put, say_left_out
from zsntta_cli.cli.values import known_methods, names, ratios
from zsntta_cli.errors import counted
from zsntta_cli.report.page import TITLE

if TYPE_CHECKING:
    from zsntta_cli.simulation.record import Record

_STDOUT = Path("-")
_names = partial(option, panel="Runs", reader=names)
_SQLITE = b"SQLite format 3\0"  # how a store begins


def report(
    *,
    records: Annotated[
        list[Path] | None,
        argument(help="Exported records (JSON Lines) or stores. [the store]"),
    ] = None,
    store: StoreOptions,
    method: Annotated[
        list[str] | None, _names(help="Methods. [all]", autocompletion=known_methods)
    ] = None,
    preset: Annotated[list[str] | None, _names(help="Presets. [all]")] = None,
    id_set: Annotated[list[str] | None, _names("--id", help="ID sets. [all]")] = None,
    ratio: Annotated[
        list[Any] | None, option(panel="Runs", reader=ratios, help="Noise ratios. [all]")
    ] = None,
    output: Annotated[Path, option(help="File to write; '-': stdout.")] = Path("report.html"),
    title: Annotated[str, option(help="Title of the page.")] = TITLE,
) -> None:
    """Write kept results as one HTML page.

    [bold]zsntta report --output report.html[/bold]

    It has tables, paired tests and figures, and loads nothing from elsewhere. A table has the rows
    of the settings that most runs share; those of others stand folded below it.
    """
    from zsntta_cli.report.page.page import page
    from zsntta_cli.results.frame import Filters

    if output != _STDOUT:
        form_of(output, PAGES, default="html")
    kept = _kept(records or [], store)
    wanted = Filters(
        method or (), id_set or (), ratios=ratio or (),
        settings={"preset": preset} if preset else {},
    )  # fmt: skip
    drawn = page(kept, title, wanted if wanted != Filters() else None)
    for words in drawn.left_out:
        say(f"note: left out: {words}.", err=True)
    put(drawn.html, output if output != _STDOUT else None)
    if output != _STDOUT:
        size = len(drawn.html.encode())
        runs, rows = counted(drawn.runs, "run"), counted(drawn.rows, "row")
        say(f"{output}: {runs} in {rows}, {size / 1000:,.0f} kB")


def _kept(paths: list[Path], store: StoreOptions) -> "Iterator[Record]":
    """Runs of all files that are named; of the store, where it is named or nothing else is."""
    from zsntta_cli.results.exchange import read_records

    if store.file is not None or not paths:
        yield from _stored(store.path)
    for path in paths:
        yield from _stored(path) if _is_store(path) else read_records(path)


def _stored(path: Path) -> "Iterator[Record]":
    from zsntta_cli.results.store import RecordStore

    with RecordStore(path) as opened:
        read = 0
        for kept in opened.all(curves=False):
            read += 1
            yield kept
        say_left_out(opened, read)


def _is_store(path: Path) -> bool:
    """Whether a file begins as a store does; what cannot be read is for its reader to say."""
    from zsntta_cli.files import open_regular

    try:
        with open(open_regular(path), "rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False
