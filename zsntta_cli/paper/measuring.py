"""The runs that tables and figures need: kept ones, new ones, and their results."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from zsntta_cli.cache.lacking import making_all
from zsntta_cli.errors import StoreError, first_of
from zsntta_cli.paper.compare import compare
from zsntta_cli.paper.runs import Wishes, cells, runs_of
from zsntta_cli.paper.shown import TableContent
from zsntta_cli.paper.tables import USUAL_ENCODER, PaperTable
from zsntta_cli.results.grid import foresee
from zsntta_cli.results.runner import Runner
from zsntta_cli.results.store import Keeping, kept_before
from zsntta_cli.settings import known_folders
from zsntta_cli.settings.options import option_name
from zsntta_cli.simulation.notes import notes_before
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import RunSettings, declared
from zsntta_cli.simulation.tuned import live_among

if TYPE_CHECKING:
    from zsntta_cli.report.figure import Figure

_TYPED = 12  # feature files at most that a proposed command names
# What names that which rows need beside features (docs/methods.md).
_NAMED_BY = {"clipn": "no-text=FILE.npy", "neglabel": "words=wordnet"}


@dataclass
class Measuring:
    """Runs taken from the store or made here: their records so far, and why others have none."""

    wishes: Wishes
    runner: Runner
    keeping: Keeping
    runs_live: bool = False
    goes_on: bool = False  # other runs go on if some lack features or fail
    tells_notes: bool = True  # what is to be known of runs; else it stands below their table
    records: dict[RunSettings, Record] = field(default_factory=dict)  # of finished runs
    missing: dict[str, list[str]] = field(default_factory=dict)  # sets, by encoder's folder
    left_out: set[RunSettings] = field(default_factory=set)  # live, and not asked for
    failures: dict[RunSettings, str] = field(default_factory=dict)  # while others went on
    is_unfinished: bool = False  # Ctrl-C stopped a live run

    def obtain(self, wanted: Sequence[RunSettings], with_gradients: bool = False) -> None:
        """Run what is not kept yet: live runs only where they are asked for.

        Raises:
            StoreError: no run has all of its features, and others do not go on.
        """
        root, keeping = self.wishes.root, replace(self.keeping, gradients=with_gradients)
        seen = foresee(root, wanted, keeping)
        runs = [*seen.kept, *seen.to_run]
        if wanted and not runs and not self.goes_on:
            sets = " and ".join(f"{len(names)} by {f}" for f, names in seen.missing.items())
            raise StoreError(
                f"feature files missing in {root}/: {sets}: {way_to_make(seen.missing, root)}"
            )
        for folder, names in seen.missing.items():
            self.missing[folder] = list(dict.fromkeys((*self.missing.get(folder, ()), *names)))
        for note in notes_before(root, runs) if self.tells_notes else ():
            self.runner.reporter.note(note)
        if not self.runs_live:  # kept ones are shown even if all others are run again
            live = live_among(root, seen.to_run)
            self.records |= kept_before(root, live, replace(keeping, fresh=False))
            runs = [run for run in runs if run not in live]
            self.left_out = {run for run in self.left_out | live if run not in self.records}
        if not with_gradients:  # a record may lack them
            runs = [run for run in runs if run not in self.records]
        for run, result in replace(self.runner, keeping=keeping).outcomes(runs, self.goes_on):
            if isinstance(result, str):
                self.failures[run] = result
            elif result.unfinished:
                self.is_unfinished = True
            else:
                self.records[run] = result
                self.failures.pop(run, None)

    def tables(self, tables: Sequence[PaperTable], command: str) -> list[TableContent]:
        """Run what tables lack; their numbers next to the printed ones, and how they were measured.

        `command` shows them.
        """
        of_tables, contents = {table: cells(table, self.wishes) for table in tables}, []
        self.obtain(runs_of(cell for of_table in of_tables.values() for cell in of_table))
        for table, of_table in of_tables.items():
            numbers = compare(of_table, self.records)
            runs = [run for run in runs_of(of_table) if run in self.records]
            above = list(_about(table, runs, self.wishes))
            contents.append(TableContent(table, numbers, above, command))
        return contents

    def figure(self, number: int) -> "Figure":
        """Run what a figure lacks, and draw it; built-in sets have no published numbers.

        Raises:
            SettingsError: the figure shows no results, or there is nothing to draw.
            StoreError: no run has all of its features, and others do not go on.
        """
        from zsntta_cli.paper import figures  # not of tables

        runs, is_built_in = figures.figure_runs(number, self.wishes), self.wishes.is_built_in
        self.obtain(runs, number in figures.GRADIENTS)
        records = [self.records[run] for run in runs if run in self.records]
        printed = None if is_built_in else figures.published(number)
        return figures.draw(number, records, printed, is_built_in)


def _about(table: PaperTable, runs: Sequence[RunSettings], wishes: Wishes) -> Iterator[str]:
    """How a table was measured: encoder, seeds, and what is not as in the paper."""
    if runs:
        encoders = ", ".join(dict.fromkeys(run.encoder for run in runs))
        seeds = list(dict.fromkeys(str(run.stream.seed) for run in runs))
        of_seeds = f"seed{'s' * (len(seeds) > 1)} {', '.join(seeds)}"
        yield f"measured: {encoders}, preset {wishes.preset}, {of_seeds}"
    changes = [f"prompt '{wishes.prompt}'"] * bool(wishes.prompt)
    for method, values in wishes.own.items():
        for name, value in values.items():
            changes.append(f"{method}.{option_name(declared(method)[name])}={value}")
    if changes:
        yield f"not as published: {', '.join(changes)}"
    methods = dict.fromkeys(row["method"] for row in table.rows.values())
    if idle := [method for method in methods if not wishes.is_run(method)]:
        options = " ".join(f"--set {name}.{_NAMED_BY[name]}" for name in idle)
        yield f"not run: {' and '.join(idle)}, which need more than features: {options}"
    named = wishes.named
    if wishes.is_built_in:
        yield "built-in sets replace the paper's; equal rows are merged"
    elif named and not any(map(wishes.is_of_paper, table.encoders)):
        yield f"nothing is published here for {named.slug}, only for {', '.join(table.encoders)}"
    elif named and named.folder and named.folder not in known_folders():
        yield f"the paper's numbers are for {USUAL_ENCODER} with OpenAI's weights"
    if wishes.ood_items:
        drawn = [run for run in runs if run.ood_set and not run.stream.ood_items]
        pairs = list(dict.fromkeys(f"{run.id_set} with {run.ood_set}" for run in drawn))
        random = f"; random because there is no list: {first_of(pairs, 3)}" * bool(pairs)
        yield f"OOD images: from the lists in {wishes.ood_items}{random}"


def way_to_make(missing: Mapping[str, Sequence[str]], root: Path) -> str:
    """How to make missing feature files, by encoder: a command to type, or an option to add."""
    if sum(map(len, missing.values())) > _TYPED:
        return "add --extract, which encodes the available sets"
    return f"type {making_all(missing, root)}"
