"""The page that sums up a reproduction: what is reproduced, what is not, and what was not run."""

import base64
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from markupsafe import Markup

from zsntta_cli.paper.comparing import OTHER_IMAGES, OUTSIDE
from zsntta_cli.paper.printed.tables import FIGURES
from zsntta_cli.paper.sheets import RULE
from zsntta_cli.paper.tally import CheckTally, place
from zsntta_cli.report.page import ACCURACIES, provenance
from zsntta_cli.report.page import document as pages
from zsntta_cli.report.page.document import Code, PageSheet
from zsntta_cli.report.page.page import Section

if TYPE_CHECKING:
    from zsntta_cli.paper.reproduction import PaperReproduction

_TITLE = "A reproduction of “Noisy Test-Time Adaptation in Vision-Language Models”"


def summary_page(whole: "PaperReproduction") -> str:
    """Make the page, which loads nothing and links to the files beside it."""
    sections = [
        Section("Tables", Markup("<p>{}</p>").format(ACCURACIES), [_tables(whole)]),
        Section("Outside", sheets=list(_outside(whole))),
        Section("Not judged", sheets=list(_not_judged(whole))),
        Section("Not run", sheets=list(_not_run(whole))),
        Section("Files", _files(whole)),
        Section("Figures", _figures(whole)),
        Section("Features and versions", sheets=list(_provenance(whole))),
    ]
    return pages.document(
        "zsntta_cli.report.page", "page", ["page.js"], title=_TITLE, about=whole.sentence + ".",
        remarks=[], sections=[part for part in sections if part.html or part.sheets],
    )  # fmt: skip


def _tables(whole: "PaperReproduction") -> PageSheet:
    numbers = ("printed", "measured", "within", "outside", "not judged", "largest difference")
    rows = []
    for table, content in whole.contents.items():
        tally = CheckTally(content.comparisons)
        not_judged = tally.compared - tally.within - tally.outside
        counts = (tally.printed, tally.measured, tally.within, tally.outside, not_judged)
        largest = f"{tally.largest.difference:+.2f}" if tally.largest else "-"
        values = [*(f"{n:,}" if table.is_measured else "" for n in counts), largest]
        rows.append(((str(table.number), table.title, tally.where), values))
    notes = [RULE, f"Made by: {whole.command}"]
    return provenance.plain_sheet(
        "Numbers of each table", ("Table", "What it shows", "Where the largest difference is"),
        numbers, rows, notes=notes,
    )  # fmt: skip


def _outside(whole: "PaperReproduction") -> Iterator[PageSheet]:
    """The numbers that chance alone does not explain, in order of falling differences."""
    numbers = [
        (table.number, c)
        for table, content in whole.contents.items()
        for c in content.comparisons
        if c.verdict == OUTSIDE
    ]
    rows = [
        (
            (str(number), place(c)),
            [
                f"{c.measured.mean:.2f}", f"{c.published.mean:.2f}", f"{c.difference:+.2f}",
                f"{c.most:.2f}",
            ],
        )
        for number, c in sorted(numbers, key=lambda pair: -abs(pair[1].difference))
        if c.measured and c.published
    ]  # fmt: skip
    if rows:
        yield provenance.plain_sheet(
            "Numbers that chance alone does not explain", ("Table", "Where"),
            ("measured", "paper", "difference", "chance, at most"), rows,
        )  # fmt: skip


def _not_judged(whole: "PaperReproduction") -> Iterator[PageSheet]:
    """The sets that are not the published ones, with the number of numbers that depend on them."""
    counts: dict[str, int] = {}
    for content in whole.contents.values():
        for c in content.comparisons:
            if c.verdict == OTHER_IMAGES and c.measured:
                for name in c.measured.miscounted:
                    counts[name] = counts.get(name, 0) + 1
    if counts:
        yield provenance.plain_sheet(
            "Sets that are not the published ones, by their counts: no number of them is judged",
            ("Set",), ("numbers",), [((name,), [f"{n:,}"]) for name, n in counts.items()],
        )  # fmt: skip


def _not_run(whole: "PaperReproduction") -> Iterator[PageSheet]:
    """Missing features with the commands that make them, live runs that are left, and failures."""
    finished, every = whole.records, whole.obtained.values()
    left = {run for obtained in every for run in obtained.not_live} - finished.keys()
    if missing := _missing(whole):
        rows = [
            ((folder, ", ".join(names), Code(whole.making({folder: names}))), [str(len(names))])
            for folder, names in missing.items()
        ]
        heads = ("Encoder", "Sets without features", "What makes them")
        yield provenance.plain_sheet("Missing features", heads, ("files",), rows, kind="commands")
    if left:
        counts = Counter(run.method for run in left)
        yield provenance.plain_sheet(
            "Live runs that were not asked for: --live runs them", ("Method",), ("runs",),
            [((method,), [f"{count:,}"]) for method, count in sorted(counts.items())],
        )  # fmt: skip
    failed = {run: line for of in every for run, line in of.failures.items() if run not in finished}
    if failed:
        yield provenance.plain_sheet(
            "Runs that failed", ("Method", "ID set", "OOD set", "Why"), (),
            [((r.method, r.id_set, r.ood_set or "", line), []) for r, line in failed.items()],
        )  # fmt: skip
    if whole.undrawn:
        yield provenance.plain_sheet(
            "Figures that are not drawn", ("Figure", "Why"), (),
            [((str(number), line), []) for number, line in whole.undrawn.items()],
        )  # fmt: skip


def _missing(whole: "PaperReproduction") -> dict[str, list[str]]:
    """The sets without features, by the folder of their encoder."""
    missing: dict[str, dict[str, None]] = {}
    for obtained in whole.obtained.values():
        for folder, names in obtained.missing.items():
            missing.setdefault(folder, {}).update(dict.fromkeys(names))
    return {folder: list(names) for folder, names in missing.items()}


def _files(whole: "PaperReproduction") -> Markup:
    """Links to the files of each table."""
    item = Markup("<li>Table {number} ({title}): {links}")
    link = Markup('<a href="table{number}{ending}">{ending}</a>')
    lines = [
        item.format(
            number=table.number, title=table.title,
            links=Markup(" ").join(
                link.format(number=table.number, ending=ending)
                for ending in (".md", ".tex", ".csv")
            ),
        )
        for table in whole.contents
    ]  # fmt: skip
    records = Markup('<p>All records: <a href="records.jsonl">records.jsonl</a></p>')
    return Markup("<ul>{}</ul>{}").format(Markup("\n").join(lines), records)


def _figures(whole: "PaperReproduction") -> Markup:
    """The figures that are drawn, embedded in the page."""
    titles = {number: title for number, _, title in FIGURES}
    picture = Markup(
        '<figure><img alt="{title}" src="data:image/svg+xml;base64,{content}">'
        "<figcaption>Figure {number}: {title}</figcaption></figure>"
    )
    return Markup("\n").join(
        picture.format(
            number=number, title=titles[number],
            content=base64.b64encode(whole.figure_path(number).read_bytes()).decode(),
        )
        for number in whole.drawn
    )  # fmt: skip


def _provenance(whole: "PaperReproduction") -> Iterator[PageSheet]:
    records = list(whole.records.values())
    if records:
        yield provenance.features(records)
        yield provenance.versions(records)
