"""Where one stands: a table's runs made or taken from the store, and beside what is published."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from zsntta_cli.errors import MissingSets
from zsntta_cli.methods import METHODS
from zsntta_cli.paper import files
from zsntta_cli.paper.cells import cells
from zsntta_cli.paper.comparing import Comparison
from zsntta_cli.paper.estimates import Estimate, estimate
from zsntta_cli.paper.measuring import Results, compare
from zsntta_cli.paper.printed.published import USUAL_ENCODER, printed
from zsntta_cli.paper.printed.tables import SAMPLES, TABLES, Table
from zsntta_cli.paper.runtime import Job, measure, timed_record
from zsntta_cli.paper.wanted import Wishes, is_timed, streams
from zsntta_cli.progress import Reporter
from zsntta_cli.results.keeping import Keeping, kept_before
from zsntta_cli.results.obtain import run_all
from zsntta_cli.settings import EncoderChoice
from zsntta_cli.simulation.notes import notes
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.simulator import LiveFactory


@dataclass(frozen=True)
class Machine:
    """How runs are made."""

    reporter: Reporter
    keeping: Keeping
    jobs: int = 1
    live: LiveFactory | None = None  # None: live methods are not run
    device: str = "auto"  # of what is timed
    samples: int = SAMPLES


@dataclass(frozen=True)
class Standing:
    """What there is of some tables."""

    wishes: Wishes
    results: Results
    missing: dict[str, list[str]]  # sets without features, by the folder of their encoder
    not_live: Sequence[RunSettings]  # live runs that were not asked for
    unfinished: bool = False  # Ctrl-C stopped a live run

    def compared(self, table: Table) -> list[Comparison]:
        """All numbers of a table."""
        return compare(cells(table, self.wishes.encoder), self.wishes, self.results)

    def live_time(self) -> Estimate:
        """How long the live runs would take that were left out."""
        live = {run: one for run, one in self.results.items() if METHODS[run.method].live}
        return estimate(self.wishes.root, self.not_live, live)

    def said(self, table: Table) -> list[str]:
        """What is below a table's title: by what it was measured."""
        runs = [run for run in table_runs(table, self.wishes) if run in self.results]
        seeds = dict.fromkeys(str(run.stream.seed) for run in runs)
        encoders = dict.fromkeys(run.encoder for run in runs)
        line = (
            f"measured: {', '.join(encoders)}, preset {self.wishes.preset}, seed"
            f"{'s' * (len(seeds) > 1)} {', '.join(seeds)}"
        )
        lines = [line] if runs else []
        if self.wishes.encoder.is_built_in:
            lines.append("built-in sets stand in for the paper's; equal rows are one")
        return lines + self._other_encoder(table)

    def _other_encoder(self, table: Table) -> list[str]:
        """What is said where published numbers are left out, or may be of another encoder."""
        encoder, every = self.wishes.encoder, printed(table.number)
        if encoder.named is None or encoder.is_built_in:
            return []
        if not any(encoder.is_of_paper(cell) for cell in every):
            theirs = ", ".join(dict.fromkeys(cell.encoder for cell in every))
            return [f"nothing is published of {encoder.named.slug} here, but of {theirs}"]
        if encoder.named.folder and encoder.named.folder != EncoderChoice(USUAL_ENCODER).slug:
            return [f"the paper's numbers are of {USUAL_ENCODER} with OpenAI's weights"]
        return []


def table_runs(table: Table, wishes: Wishes) -> list[RunSettings]:
    """The runs of a table, each once."""
    if not table.is_measured:
        return []
    every = (streams(cell, wishes) for cell in cells(table, wishes.encoder))
    return list(dict.fromkeys(run for some in every for seeds in some for run in seeds))


def all_runs(wishes: Wishes, tables: Iterable[Table] = TABLES) -> list[RunSettings]:
    """The runs of all tables, each once."""
    return list(dict.fromkeys(run for table in tables for run in table_runs(table, wishes)))


def stand(tables: Sequence[Table], wishes: Wishes, machine: Machine) -> Standing:
    """Run what is not kept yet, cached methods first, live ones only where they may be.

    Raises:
        MissingSets: not one run has all of its features.
    """
    wanted = all_runs(wishes, tables)
    missing = files.missing(wishes.root, wanted)
    runs = files.runnable(wishes.root, wanted)
    if wanted and not runs:
        raise MissingSets(missing, str(wishes.root))
    for note in (*notes(wishes.root, runs), *_cut(wishes, runs)):
        machine.reporter.note(note)
    replays = [run for run in runs if not needs_images(run)]
    made = run_all(wishes.root, replays, machine.jobs, None, machine.reporter, machine.keeping)
    lived, left = _live([run for run in runs if needs_images(run)], wishes, machine)
    results = {one.settings: one for one in (*made, *lived) if not one.unfinished}
    unfinished = any(one.unfinished for one in lived)
    return Standing(wishes, results, missing, left, unfinished)


def needs_images(run: RunSettings) -> bool:
    """Whether a run goes through the encoder: that of a live method, or one whose time is asked."""
    return METHODS[run.method].live or is_timed(run)


def _live(
    runs: Sequence[RunSettings], wishes: Wishes, machine: Machine
) -> tuple[Sequence[Record], Sequence[RunSettings]]:
    """Live runs that are kept or made, and those that were left."""
    # Live ones that are not to be run are shown, even where all others are run again.
    fresh = machine.keeping.fresh and machine.live is not None
    timed = [run for run in runs if is_timed(run)]  # whose time is of here and now, so not kept
    live = [run for run in runs if not is_timed(run)]
    before = kept_records(wishes, live, replace(machine.keeping, fresh=fresh))
    left = [run for run in runs if run not in before]
    if machine.live is None or not left:
        return list(before.values()), left
    time = estimate(wishes.root, left, before)
    machine.reporter.note(
        f"{len(left):,} live runs of {time.items:,} items: about {time.text} {time.source}"
    )
    made = run_all(wishes.root, live, 1, machine.live, machine.reporter, machine.keeping)
    if not any(one.unfinished for one in made):
        made += _timed(timed, wishes, machine)
    return made, []


def _timed(runs: Sequence[RunSettings], wishes: Wishes, machine: Machine) -> list[Record]:
    """Time and memory of methods with their encoder, as records that say nothing else."""
    encoder = wishes.encoder.named or EncoderChoice()
    if runs and encoder.folder:
        machine.reporter.note(f"note: {encoder.folder} is a folder of features: nothing to time")
        return []
    jobs = [
        Job(
            run.method, run.flat().get("batch_size", 1), encoder, machine.device,
            machine.samples,
        )
        for run in runs
    ]  # fmt: skip
    rows = measure(jobs, lambda row: machine.reporter.note(str(row)))
    return [
        timed_record(run, row)
        for run, row in zip(runs, rows, strict=True)
        if row.seconds is not None
    ]


def kept_records(
    wishes: Wishes, runs: Sequence[RunSettings], keeping: Keeping
) -> dict[RunSettings, Record]:
    """The records of those runs that are in the store."""
    found = kept_before(wishes.root, runs, keeping)
    return {run: kept.record for run, kept in found.items()}


def _cut(wishes: Wishes, runs: Sequence[RunSettings]) -> list[str]:
    """A note on sets of which not all images have features."""
    cut = files.cut_sets(wishes.root, runs)
    said = [f"'{name}' ({some:,} of {whole:,})" for name, (some, whole) in cut.items()]
    return [f"note: features of a part of the images alone: {', '.join(said)}"] if said else []
