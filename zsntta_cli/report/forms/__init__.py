"""The forms in which results are written: each a function and a line here. No NumPy.

A form of sheets draws tables for people. A form of rows writes numbers for programs, in the schema
of results/tidy.py. Every command that writes results takes its forms from here.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zsntta_cli.report.sheet import Sheet


@dataclass(frozen=True)
class Form:
    """One entry of FORMS."""

    ending: str  # of a file in it
    where: str  # the function that writes it: "module:function"
    of_rows: bool = False  # it takes rows of values, not sheets

    def load(self) -> Callable[..., str]:
        """Import the function when it is first needed."""
        module, _, function = self.where.partition(":")
        written: Callable[..., str] = getattr(import_module(f"{__name__}.{module}"), function)
        return written


TABLE = "table"  # drawn for the terminal, if there is one
FORMS = {
    TABLE: Form(".txt", "terminal:tables"),
    "markdown": Form(".md", "text:markdown"),
    "latex": Form(".tex", "latex:latex"),
    "html": Form(".html", "text:html"),
    "csv": Form(".csv", "data:csv_text", of_rows=True),
    "json": Form(".json", "data:json_text", of_rows=True),
}
# Of figures: what is drawn by matplotlib, and the numbers of the points.
FIGURE_ENDINGS = {".pdf": "pdf", ".svg": "svg", ".png": "png", ".csv": "csv"}
ENDINGS = {form.ending: name for name, form in FORMS.items()}  # by a file's ending


def draw(sheets: "Iterable[Sheet]", form: str, to_file: bool = False) -> str:
    """Draw sheets as a text; `to_file`: not for a terminal, so as wide as necessary."""
    written = FORMS[form].load()
    parts = list(sheets)
    return written(parts, to_file=to_file) if form == TABLE else written(parts)


def write_rows(rows: Sequence[dict[str, Any]], form: str, columns: Sequence[str] = ()) -> str:
    """Write rows of values as a text; `columns` names the columns in case there are no rows."""
    return FORMS[form].load()(rows, columns)
