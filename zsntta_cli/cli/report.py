"""`zsntta report`: kept results on one page."""

from pathlib import Path

from zsntta_cli.cli.command import say
from zsntta_cli.cli.options import StoreOptions, WantedRuns, argument, option
from zsntta_cli.cli.output import PAGES, form_of, put
from zsntta_cli.errors import counted
from zsntta_cli.report.page import TITLE

_STDOUT = Path("-")


def report(
    *,
    records: list[Path] | None = argument(
        None, "Exported records (JSON Lines) or stores. [those in --records]"
    ),
    store: StoreOptions,
    wanted: WantedRuns,
    output: Path = option(Path("report.html"), "File to write, or '-' for stdout."),
    title: str = option(TITLE, "Title of the page."),
) -> None:
    """Write kept results to an HTML page.

    [bold]zsntta report --output report.html[/bold]

    The page has tables, paired tests and figures, and loads nothing from elsewhere. A table shows
    the settings that most runs share. Rows with other settings are collapsed below it.
    """
    from zsntta_cli.report.page.page import page

    if output != _STDOUT:
        form_of(output, PAGES, default="html")
    kept = store.runs(records, curves=True)
    drawn = page(kept, title, wanted.filters(kept) if wanted.any else None)
    for words in drawn.left_out:
        say(f"note: left out: {words}.", err=True)
    put(drawn.html, output if output != _STDOUT else None)
    if output != _STDOUT:
        size = len(drawn.html.encode())
        runs, rows = counted(drawn.runs, "run"), counted(drawn.rows, "row")
        say(f"{output}: {runs} in {rows}, {size / 1000:,.0f} kB")
