"""`zsntta methods`: list methods, show one, and check that a method is honest."""

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
    """List all methods, how they run, what they need and their papers.

    [bold]zsntta methods list[/bold]
    """
    from zsntta_cli.methods import METHODS
    from zsntta_cli.report.lists import method_rows, method_sheet

    rows = method_rows(METHODS)
    listed.put([method_sheet(rows)], rows)


@command(app)
def show(
    name: str = argument(..., "Method, such as adand or oodd+tda."), *, shown: TableOutput
) -> None:
    """Show a method and its settings.

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
    target: str = argument(..., "Method, script that registers methods, or SCRIPT.py:NAME."),
    *,
    shown: TableOutput,
) -> None:
    """Check on synthetic features that a method is honest.

    [bold]zsntta methods check adand[/bold]

    No decision may depend on later items, on labels, or on the names or order of the classes, or
    differ when the method runs twice.

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
        raise SettingsError(f"{path} registers no method: add METHODS[NAME] = CLASS")
    return registered
