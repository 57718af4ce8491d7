"""Where a result goes and in what format: to stdout, or to a file that is complete or absent."""

import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from zsntta_cli.cli.command import completed, say
from zsntta_cli.cli.options import option
from zsntta_cli.errors import SettingsError, ZsnttaError, counted
from zsntta_cli.report.forms import ENDINGS, FORMS, TABLE, in_form
from zsntta_cli.settings.options import check_choice

if TYPE_CHECKING:
    from zsntta_cli.report.figure import Figure
    from zsntta_cli.report.sheet import Sheet
    from zsntta_cli.results.store import Keeping
    from zsntta_cli.simulation.runs import RunSettings

PAGES = {".html": "html", ".htm": "html"}
NOTHING_DONE = "Nothing was run or written (--dry-run)."
_TYPED = 12  # feature files at most that a proposed command names
_OTHER_WORDS = {"tex": "latex", "md": "markdown", "jsonl": "json"}


FORM = option(
    None, f"Format: {', '.join(FORMS)}. [from the ending of --output, or table]", "--format",
    panel="Output", metavar="NAME",
)  # fmt: skip
OUTPUT = option(None, "File to write.", panel="Output")


@dataclass(frozen=True)
class TableOutput:
    """Where a table or a list goes; its format is known before any work is done for it.

    The format is named, in any letter case or by a synonym, or follows from the file's ending.
    """

    form: str | None = FORM
    output: Path | None = OUTPUT

    def __post_init__(self) -> None:
        named = _OTHER_WORDS.get((self.form or "").lower(), (self.form or "").lower())
        if named:
            check_choice("format", named, tuple(FORMS))
        object.__setattr__(self, "form", form_of(self.output, ENDINGS, named or None, TABLE))

    @property
    def has_notes(self) -> bool:
        """Whether notes are shown below the table, as on the terminal; else they go to stderr."""
        return self.output is None and not FORMS[self.form or TABLE].of_rows

    def put(
        self,
        sheets: "Iterable[Sheet]",
        rows: "Sequence[dict[str, Any]]",
        columns: Sequence[str] = (),
    ) -> None:
        """Write a list; `columns` are the columns of a CSV if there are no rows."""
        form = self.form or TABLE
        put(in_form(form, sheets, rows, self.output is not None, columns), self.output)


def form_of(
    output: Path | None,
    forms: Mapping[str, str],
    named: str | None = None,
    default: str = "",
    option: str = "--output",
) -> str:
    """The format of a result, from the option that names it or from the ending of its file.

    `forms` are the formats that the command knows, by ending. `default` is the format if neither
    determines it: on stdout, in a pipe or on a device. `option` is the option that names the file.

    Raises:
        SettingsError: the ending belongs to no format, or to a different one than is named.
        StoreError: a folder has that name.
    """
    if output is None:
        return named or default
    form, streams = forms.get(output.suffix.lower()), is_stream(output)
    if form and named not in (None, form):
        raise SettingsError(
            f"the format is {named}, but the ending of {option} {output} means {form}."
        )
    if streams or not output.suffix:
        form = form or named or (default if streams else None)
    if not form:
        raise SettingsError(f"{option} is '{output}', must end in one of {', '.join(forms)}.")
    return form


def is_stream(output: Path) -> bool:
    """Whether the output is a pipe or a device, whose name may have any ending."""
    from zsntta_cli.files import check_target

    return check_target(output) or output.is_relative_to("/dev")  # stdout may be a file


def put_figure(figure: "Figure", width: float, output: Path) -> None:
    """Write a figure, `width` inches wide, to a file, and print its notes."""
    from zsntta_cli.report.figures import write

    say_notes(figure)
    for path in write(output, figure, width):
        say(str(path))


def say_notes(figure: "Figure") -> None:
    """Print the notes on a figure, which are also in a file beside its drawing."""
    for sentence in figure.sentences:
        say(f"note: {sentence}", err=True)


def command_line() -> str:
    """The command line, with which a file records how it was made."""
    return shlex.join(["zsntta", *sys.argv[1:]])


def put(text: str, output: Path | None) -> None:
    """Write a result to a file, completely or not at all, or print it.

    A name that is not UTF-8 has the same bytes in the file as on the disk.
    """
    from zsntta_cli.files import write_whole

    if output:
        write_whole(output, text.encode(errors="surrogateescape"))
    else:
        typer.echo(text, nl=False)


def say_foresight(
    root: Path,
    runs: "Sequence[RunSettings]",
    keeping: "Keeping",
    typed: Mapping[str, Any],
    of_many: str = "",
) -> None:
    """Print how many runs are kept, to run and without features, and how to get what is missing.

    `of_many` is the command that makes many files, instead of a line that names each.
    """
    from zsntta_cli.cache.lacking import making_all
    from zsntta_cli.results.grid import foresee
    from zsntta_cli.simulation.sources import Library

    seen, foreseen = foresee(root, runs, keeping), Library(root, rows=False)
    errors = [str(e) for e in map(foreseen.look, seen.to_run) if isinstance(e, ZsnttaError)]
    say(
        f"{counted(len(runs), 'run')}: {len(seen.kept):,} kept, "
        f"{len(seen.to_run) - len(errors):,} to run, {len(seen.lacking) + len(errors):,} without "
        "features."
    )
    if seen.missing:
        count = sum(map(len, seen.missing.values()))
        way = of_many if of_many and count > _TYPED else making_all(seen.missing, root)
        say(completed(f"{counted(count, 'feature file')} missing: type {way}", typed))
    for reason in dict.fromkeys(errors):
        say(completed(reason, typed))
    say(NOTHING_DONE)
