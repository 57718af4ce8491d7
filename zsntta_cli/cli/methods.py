"""`zsntta methods`: what there is to choose from, all about one, and is one of your own honest."""

from pathlib import Path

import typer

from zsntta_cli.cli.command import command, group
from zsntta_cli.cli.options import argument
from zsntta_cli.cli.output import TableOutput
from zsntta_cli.cli.values import in_known_case
from zsntta_cli.errors import SettingsError

app = group("List, show and check methods.", lists=True)


@command(app, "list")
def list_methods(listed: TableOutput) -> None:
    """List all methods: how each runs, what it needs, its paper.

    [bold]zsntta methods list[/bold]
    """
    from zsntta_cli.methods import METHODS
    from zsntta_cli.report.lists import method_rows, method_sheet

    rows = method_rows(METHODS)
    listed.put([method_sheet(rows)], rows)


@command(app)
def show(
    name: str = argument(..., "A method, such as adand or oodd+tda."), *, shown: TableOutput
) -> None:
    """Show all about a method, with its settings.

    [bold]zsntta methods show adand[/bold]

    It also shows its paper, what it needs and costs, and what presets change.
    """
    from zsntta_cli.methods import check_method
    from zsntta_cli.report.lists import method_sheets, setting_rows

    name = in_known_case(name)
    check_method(name)
    rows = [{"method": name, **row} for row in setting_rows(name)] or [{"method": name}]
    shown.put(method_sheets(name), rows)


@command(app)
def check(
    target: str = argument(..., "A script that registers methods, SCRIPT.py:NAME, or a method."),
    *,
    shown: TableOutput,
) -> None:
    """Check that a method is honest, on drawn features.

    [bold]zsntta methods check adand[/bold]

    No decision may change with later items, with the classes' names, labels or order, or when the
    method runs twice.

    The exit code is 1 if a check fails.
    """
    from zsntta_cli.report.lists import check_sheet
    from zsntta_cli.simulation.checks import FAILED, check_method

    results = {name: check_method(name) for name in _methods_of(target)}
    rows = [{"method": name, **vars(one)} for name, found in results.items() for one in found]
    shown.put([check_sheet(name, found) for name, found in results.items()], rows)
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
        raise SettingsError(f"{path} registers no method, as METHODS[NAME] = CLASS does")
    return registered
