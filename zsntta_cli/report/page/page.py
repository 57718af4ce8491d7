"""The page: one file that loads nothing, runs its own script alone, and reads without it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from zsntta_cli.errors import StoreError
from zsntta_cli.report.forms.svg import symbols
from zsntta_cli.report.page import BASELINE, TITLE, figures, provenance
from zsntta_cli.report.page.document import asset, document, footer
from zsntta_cli.report.page.entries import Taken, taken
from zsntta_cli.report.page.headline import headline, streams
from zsntta_cli.report.page.leaderboard import Reported, leaderboard
from zsntta_cli.report.page.markup import text
from zsntta_cli.report.page.provenance import Command
from zsntta_cli.report.page.ranking import standings
from zsntta_cli.report.page.rows import Row, rows_of
from zsntta_cli.results.frame import tables
from zsntta_cli.results.kept import Kept


@dataclass(frozen=True)
class Page:
    """What was made of how much."""

    html: str
    runs: int
    rows: int
    left_out: tuple[str, ...]  # what is not on it, and why


def page(
    kept: Iterable[Kept],
    command: Command,
    title: str = TITLE,
    baseline: str = BASELINE,
    reported: Sequence[Reported] = (),
) -> Page:
    """A report of kept runs: the same runs, in whatever order, give the same page.

    `command` gives what one types to repeat runs that differ in seed and OOD set; `baseline` is the
    method that gains are told from; `reported` are published rows, shown where their sets are.

    Raises:
        StoreError: there is nothing to show.
    """
    found = taken(kept)
    left_out = _left_out(found)
    if not found.entries:
        raise StoreError(
            f"there is no result to report{': ' * bool(left_out)}{'; '.join(left_out)}"
        )
    rows = rows_of(found.entries)
    frame, known = tables(found.entries), standings(rows)
    looks = figures.looks(frame)
    sections = {
        "Results": "".join(headline(stream, some, known) for stream, some in streams(rows).items()),
        "Leaderboard": _NO_SCRIPT + leaderboard(rows, known, baseline, reported),
        "Acc_H against the noise ratio": figures.sweeps(frame, looks),
        "Within the streams": figures.insides(frame, looks, baseline),
        "How to repeat each row": provenance.commands(rows, command),
        "Settings in full": provenance.settings(rows),
        "Features and versions": provenance.features(found.entries)
        + provenance.versions(found.entries),
    }
    body = _opening(title, found, rows, left_out) + _contents(sections) + _main(sections)
    style, script = asset(__package__, "page.css"), asset(__package__, "page.js")
    html = document(title, symbols() + body, style, script)
    return Page(html, len(found.entries), len(rows), left_out)


_NO_SCRIPT = (
    '<div id="controls" hidden></div>'
    '<p class="noscript">With scripts on, this table sorts, filters and downloads.</p>\n'
)


def _left_out(found: Taken) -> tuple[str, ...]:
    said = []
    if found.unfinished:
        said.append(f"{found.unfinished:,} unfinished runs")
    if found.outdated:
        said.append(f"{found.outdated:,} runs by other rules than this version's")
    return tuple(said)


def _opening(title: str, found: Taken, rows: Sequence[Row], left_out: Sequence[str]) -> str:
    """What the page is of, in two lines."""
    methods = dict.fromkeys(one.method for one in rows)
    sets = dict.fromkeys(one.spot.stream.id_set for one in rows)
    encoders = dict.fromkeys(one.spot.stream.encoder for one in rows)
    said = (
        f"{len(found.entries):,} runs in {len(rows):,} rows: {', '.join(methods)} on "
        f"{', '.join(sets)} by {', '.join(encoders)}."
    )
    missing = f"<p><strong>Left out: {text('; '.join(left_out))}.</strong></p>" if left_out else ""
    return f"<header><h1>{text(title)}</h1><p>{text(said)}</p>{missing}{_WORDS}</header>\n"


_WORDS = (
    "<p>Acc_S: ID samples called clean and classified right. Acc_N: OOD samples called noise. "
    "Acc_H: their harmonic mean. ± is the deviation over seeds, that is over orders of the "
    "stream.</p>"
)


def _contents(sections: dict[str, str]) -> str:
    links = "".join(
        f'<li><a href="#s{i}">{name}</a>'
        for i, (name, inner) in enumerate(sections.items())
        if inner
    )
    return f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n'


def _main(sections: dict[str, str]) -> str:
    inner = "".join(
        f'<section aria-labelledby="s{i}"><h2 id="s{i}">{name}</h2>\n{content}</section>\n'
        for i, (name, content) in enumerate(sections.items())
        if content
    )
    return f"<main>{inner}</main>\n{footer()}"
