"""`zsntta methods`: what there is to choose from, all about one, and is one of your own honest."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zsntta_cli.cli.line.command import Command, group, misused
from zsntta_cli.cli.line.lists import in_known_case
from zsntta_cli.cli.line.output import Form, form_of, put
from zsntta_cli.report.forms import ENDINGS, TABLE, draw_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zsntta_cli.report.sheet import Sheet

app = group("List, show and check methods.", lists=True)

_Format = Annotated[
    Form | None,
    typer.Option("--format", help="Format of the output. [by the output's ending, or table]"),
]
_Output = Annotated[Path | None, typer.Option(help="File to write.")]


@app.command("list", cls=Command)
def list_methods(form: _Format = None, output: _Output = None) -> None:
    """List all methods: how each runs, what it needs, its paper."""
    from zsntta_cli.methods import METHODS
    from zsntta_cli.report.method_cards import method_rows, method_sheet

    written = form_of(output, ENDINGS, form, TABLE)
    rows = method_rows(METHODS)
    _put(rows, [method_sheet(rows)], written, output)


@app.command(cls=Command)
def show(
    name: Annotated[str, typer.Argument(help="A method, such as adand or oodd+tda.")],
    form: _Format = None,
    output: _Output = None,
) -> None:
    """Show all about a method, with its settings.

    It also shows its paper, what it needs and costs, and what presets change.
    """
    from zsntta_cli.methods import check_method
    from zsntta_cli.report.method_cards import card_rows, card_sheets

    written = form_of(output, ENDINGS, form, TABLE)
    name = in_known_case(name)
    check_method(name)
    _put(card_rows(name), card_sheets(name), written, output)


@app.command(cls=Command)
def check(
    target: Annotated[
        str, typer.Argument(help="A script that registers methods, SCRIPT.py:NAME, or a method.")
    ],
    form: _Format = None,
    output: _Output = None,
) -> None:
    """Check that a method is honest, on drawn features.

    No decision may change with later items, with the classes' names, labels or order, or when the
    method runs twice.

    The exit code is 1 if a check fails.
    """
    from zsntta_cli.report.method_cards import check_rows, check_sheet
    from zsntta_cli.simulation.checks import FAILED, check_method

    written = form_of(output, ENDINGS, form, TABLE)
    results = {name: check_method(name) for name in _methods_of(target)}
    sheets = [check_sheet(name, found) for name, found in results.items()]
    _put(check_rows(results), sheets, written, output)
    if any(result.outcome == FAILED for found in results.values() for result in found):
        raise typer.Exit(1)


def _methods_of(target: str) -> list[str]:
    """The methods that are meant: a name, those that a script registers, or one of them."""
    from zsntta_cli.methods import check_method
    from zsntta_cli.plugins import load_script

    path, name = (target, "") if target.endswith(".py") else target.rpartition(":")[::2]
    if not path.endswith(".py"):
        check_method(target)
        return [target]
    registered = load_script(Path(path)).get("method", [])
    if name:
        check_method(name)
        return [name]
    if not registered:
        raise misused(f"{path} registers no method, as METHODS[NAME] = CLASS does")
    return registered


def _put(
    rows: "Sequence[dict[str, Any]]", sheets: "Sequence[Sheet]", form: str, output: Path | None
) -> None:
    """Write rows or sheets, as the form wants."""
    put(draw_list(sheets, rows, form, bool(output)), output)
