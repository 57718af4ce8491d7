"""The runs of tables and figures, made or taken from the store, as content beside the paper's."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from zsntta_cli.cache.folder import folder_name
from zsntta_cli.cache.lacking import missing_sets
from zsntta_cli.errors import counted
from zsntta_cli.paper.figures import PAPER, TINY, Bench, draw, found, published
from zsntta_cli.paper.measuring import compare
from zsntta_cli.paper.printed.published import USUAL_ENCODER, printed
from zsntta_cli.paper.printed.tables import PaperTable
from zsntta_cli.paper.runs import (
    Wishes,
    all_runs,
    count_items,
    runnable,
    wished_cells,
)
from zsntta_cli.paper.sheets import TableContent
from zsntta_cli.progress import Reporter
from zsntta_cli.report.figure import Figure
from zsntta_cli.results.keeping import Keeping, kept_before, missing_files
from zsntta_cli.results.runner import Failures, Jobs, OnRay, run_all
from zsntta_cli.settings import known_folders
from zsntta_cli.settings.options import option_name
from zsntta_cli.simulation.notes import notes_before
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import RunSettings, declared
from zsntta_cli.simulation.simulator import LiveFactory
from zsntta_cli.simulation.tuned import live_among


@dataclass(frozen=True)
class Execution:
    """The choices of how runs are made."""

    reporter: Reporter
    keeping: Keeping
    jobs: Jobs = 1
    live: LiveFactory | None = None  # None: live methods are not run
    goes_on: bool = False  # other runs go on if some lack features or fail
    tells_notes: bool = True  # what is to be known of runs; else it stands below their table


@dataclass(frozen=True)
class Obtained:
    """The results of wanted runs, and why some have none."""

    wishes: Wishes
    records: dict[RunSettings, Record]  # of finished runs
    missing: dict[str, list[str]]  # sets without features, by the folder of their encoder
    not_live: Sequence[RunSettings]  # live runs that were not asked for
    unfinished: bool  # Ctrl-C stopped a live run
    failures: Failures  # runs that ended with an error, while the others went on

    @property
    def items_left(self) -> int:
        """The number of items of the live runs that were left out."""
        return count_items(self.wishes.root, self.not_live)


@dataclass(frozen=True)
class Standing(Obtained):
    """The results of some tables' runs."""

    def content(self, table: PaperTable, command: str = "") -> TableContent:
        """The content of a table: all measured numbers beside what is published."""
        comparisons = compare(wished_cells(table, self.wishes), self.wishes, self.records)
        return TableContent(table, comparisons, self._above(table), command)

    def _above(self, table: PaperTable) -> list[str]:
        """The lines below a table's title, which say how it was measured."""
        runs = [run for run in all_runs(self.wishes, [table]) if run in self.records]
        seeds = dict.fromkeys(str(run.stream.seed) for run in runs)
        encoders = dict.fromkeys(run.encoder for run in runs)
        line = (
            f"measured: {', '.join(encoders)}, preset {self.wishes.preset}, seed"
            f"{'s' * (len(seeds) > 1)} {', '.join(seeds)}"
        )
        lines = [line] if runs else []
        lines += self._changed()
        if self.wishes.encoder.is_built_in:
            lines.append("built-in sets stand in for the paper's; equal rows are one")
        return [*lines, *self._other_encoder(table)]

    def _changed(self) -> list[str]:
        """A line on prompts and settings that differ from the paper's tables; none if none do."""
        wishes = self.wishes
        changes = [f"prompt '{wishes.prompt}'"] * bool(wishes.prompt)
        changes += [
            f"{method}.{option_name(declared(method)[name])}={value}"
            for method, name, value in wishes.own
        ]
        return [f"not as published: {', '.join(changes)}"] if changes else []

    def _other_encoder(self, table: PaperTable) -> list[str]:
        """A line if published numbers are left out, or may be of another encoder."""
        encoder, every = self.wishes.encoder, printed(table.number)
        if encoder.named is None or encoder.is_built_in:
            return []
        if not any(encoder.is_of_paper(cell) for cell in every):
            theirs = ", ".join(dict.fromkeys(cell.encoder for cell in every))
            return [f"nothing is published of {encoder.named.slug} here, but of {theirs}"]
        if encoder.named.folder and encoder.named.folder not in known_folders():
            return [f"the paper's numbers are of {USUAL_ENCODER} with OpenAI's weights"]
        return []


@dataclass(frozen=True)
class Illustration(Obtained):
    """The results of a figure's runs, and the figure."""

    number: int
    bench: Bench
    kept: Sequence[Record]

    def figure(self) -> Figure:
        """Draw the figure from the runs that there are; built-in sets have no published numbers.

        Raises:
            SettingsError: there is nothing to draw.
        """
        numbers = published(self.number) if self.bench is PAPER else None
        return draw(self.number, self.kept, numbers or None, self.bench)


def stand(tables: Iterable[PaperTable], wishes: Wishes, execution: Execution) -> Standing:
    """Run what tables lack: replays first, and live methods only if `execution` allows them.

    Raises:
        StoreError: no run has all of its features.
    """
    return Standing(**vars(_obtain(all_runs(wishes, tables), wishes, execution)))


def illustrate(number: int, wishes: Wishes, execution: Execution) -> Illustration:
    """Run what a figure lacks, live methods only if `execution` allows them.

    Raises:
        SettingsError: the figure shows no results.
        StoreError: no run has all of its features.
    """
    keeping = replace(execution.keeping, gradients=found(number).analysed)
    wanted = figure_runs(number, wishes)
    obtained = _obtain(wanted, wishes, replace(execution, keeping=keeping))
    kept_runs = list(obtained.records.values())
    return Illustration(**vars(obtained), number=number, bench=_bench(wishes), kept=kept_runs)


def figure_runs(number: int, wishes: Wishes) -> list[RunSettings]:
    """The runs that a figure shows.

    Raises:
        SettingsError: the figure shows no results.
    """
    folder = folder_name(wishes.encoder.usual)
    return [wishes.changed(run) for run in found(number).runs(folder, _bench(wishes))]


def _bench(wishes: Wishes) -> Bench:
    return TINY if wishes.encoder.is_built_in else PAPER


def _obtain(wanted: Sequence[RunSettings], wishes: Wishes, execution: Execution) -> Obtained:
    """Run what is not kept yet: replays first, and live methods only if they are allowed."""
    missing = missing_files(wishes.root, wanted)
    runs = runnable(wishes.root, wanted)
    if wanted and not runs and not execution.goes_on:
        raise missing_sets(missing, wishes.root)
    for note in notes_before(wishes.root, runs) if execution.tells_notes else ():
        execution.reporter.note(note)
    by_images = live_among(wishes.root, runs)
    replays = [run for run in runs if run not in by_images]
    failures = Failures()
    hook = failures if execution.goes_on else None
    records = run_all(
        wishes.root, replays, execution.jobs, None, execution.reporter, execution.keeping, hook
    )
    live = [run for run in runs if run in by_images]
    live_records, not_live = _live(live, wishes, execution, hook)
    finished = {r.settings: r for r in (*records, *live_records) if not r.unfinished}
    unfinished = any(record.unfinished for record in live_records)
    return Obtained(wishes, finished, missing, not_live, unfinished, failures)


def _live(
    runs: Sequence[RunSettings], wishes: Wishes, execution: Execution, failures: Failures | None
) -> tuple[Sequence[Record], Sequence[RunSettings]]:
    """Make live runs or take kept ones, and give those that are left."""
    # Record live runs are shown if live runs are not allowed, even if all others are run again.
    fresh = execution.keeping.fresh and execution.live is not None
    before = kept_records(wishes, runs, replace(execution.keeping, fresh=fresh))
    not_kept = [run for run in runs if run not in before]
    if execution.live is None or not not_kept:
        return list(before.values()), not_kept
    count = count_items(wishes.root, not_kept)
    execution.reporter.note(f"{counted(len(not_kept), 'live run')} of {counted(count, 'item')}")
    jobs = execution.jobs if isinstance(execution.jobs, OnRay) else 1
    records = run_all(
        wishes.root, runs, jobs, execution.live, execution.reporter, execution.keeping, failures
    )
    return records, []


def kept_records(
    wishes: Wishes, runs: Sequence[RunSettings], keeping: Keeping
) -> dict[RunSettings, Record]:
    """The records of the runs that are in the store."""
    return kept_before(wishes.root, runs, keeping)
