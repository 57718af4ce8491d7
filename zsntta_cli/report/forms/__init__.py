"""The forms that results are written in: a function and a line here each. Light: no NumPy.

A form of sheets draws tables as people read them; a form of rows writes numbers for programs, in
the one schema of results/tidy.py. Every command that writes results takes its forms from here.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zsntta_cli.report.sheet import Sheet


@dataclass(frozen=True)
class Form:
    """One line of FORMS."""

    ending: str  # of a file in it
    where: str  # the function that writes it: "module:function"
    of_rows: bool = False  # it takes rows of values, not sheets

    def load(self) -> Callable[..., str]:
        """The function, imported when it is first needed."""
        module, _, function = self.where.partition(":")
        written: Callable[..., str] = getattr(import_module(f"{__name__}.{module}"), function)
        return written


TABLE = "table"  # drawn for the terminal, if there is one
FORMS = {
    TABLE: Form(".txt", "terminal:tables"),
    "markdown": Form(".md", "text:markdown"),
    "latex": Form(".tex", "text:latex"),
    "html": Form(".html", "text:html"),
    "csv": Form(".csv", "data:csv_text", of_rows=True),
    "json": Form(".json", "data:json_text", of_rows=True),
}
# Of figures: what is drawn by matplotlib, and the numbers of the points.
FIGURE_ENDINGS = {".pdf": "pdf", ".svg": "svg", ".png": "png", ".csv": "csv"}
ENDINGS = {form.ending: name for name, form in FORMS.items()}  # by a file's ending


def draw(sheets: "Iterable[Sheet]", form: str, to_file: bool = False) -> str:
    """Sheets as a text in a form of sheets; `to_file`: for no terminal, as wide as it needs."""
    written = FORMS[form].load()
    parts = list(sheets)
    return written(parts, to_file=to_file) if form == TABLE else written(parts)


def write_rows(rows: Sequence[dict[str, Any]], form: str, columns: Sequence[str] = ()) -> str:
    """Rows of values as a text in a form of rows; `columns` name those of a table without rows."""
    return FORMS[form].load()(rows, columns)
