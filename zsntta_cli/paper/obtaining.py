"""The records of the runs that tables and figures need: taken from the store, or made."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from zsntta_cli.cache.lacking import missing_sets
from zsntta_cli.errors import counted, first_of
from zsntta_cli.paper.compare import compare
from zsntta_cli.paper.runs import Wishes, all_runs, is_left_out
from zsntta_cli.paper.shown import TableContent
from zsntta_cli.paper.tables import USUAL_ENCODER, PaperTable
from zsntta_cli.progress import Reporter
from zsntta_cli.results.grid import missing_files, needed_files
from zsntta_cli.results.runner import Failures, Jobs, OnRay, run_all
from zsntta_cli.results.store import Keeping, kept_before
from zsntta_cli.settings import known_folders
from zsntta_cli.settings.options import option_name
from zsntta_cli.simulation.notes import notes_before
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import RunSettings, declared
from zsntta_cli.simulation.simulator import LiveFactory
from zsntta_cli.simulation.tuned import live_among

# What names that which rows need beside features (docs/methods.md).
_NAMED_BY = {"clipn": "no-text=FILE.npy", "neglabel": "words=wordnet"}


@dataclass(frozen=True)
class Work:
    """The choices of how runs are made."""

    reporter: Reporter
    keeping: Keeping
    jobs: Jobs = 1
    live: LiveFactory | None = None  # None: live methods are not run
    goes_on: bool = False  # other runs go on if some lack features or fail
    tells_notes: bool = True  # what is to be known of runs; else it stands below their table


@dataclass
class Obtained:
    """The records of wanted runs, and why some have none."""

    records: dict[RunSettings, Record] = field(default_factory=dict)  # of finished runs
    missing: dict[str, list[str]] = field(default_factory=dict)  # sets, by their encoder's folder
    left_out: dict[RunSettings, None] = field(default_factory=dict)  # live, and not asked for
    failures: Failures = field(default_factory=Failures)  # of runs, while the others went on
    is_unfinished: bool = False  # Ctrl-C stopped a live run

    def add(self, other: "Obtained") -> None:
        """Take what was obtained later: what has a record now has not failed."""
        self.records |= other.records
        for folder, names in other.missing.items():
            self.missing[folder] = list(dict.fromkeys([*self.missing.get(folder, ()), *names]))
        self.left_out |= other.left_out
        self.failures |= other.failures
        for run in self.records:
            self.left_out.pop(run, None)
            self.failures.pop(run, None)
        self.is_unfinished |= other.is_unfinished


def lacking(runs: Iterable[RunSettings], missing: Mapping[str, Sequence[str]]) -> set[RunSettings]:
    """The runs of which a feature file is missing."""
    files = {(folder, name) for folder, names in missing.items() for name in names}
    return {run for run in runs if not files.isdisjoint(needed_files([run]))}


def obtain(wanted: Sequence[RunSettings], wishes: Wishes, work: Work) -> Obtained:
    """Run what is not kept yet: replays first, and live methods only if they are allowed.

    Raises:
        StoreError: no run has all of its features, and others do not go on.
    """
    missing = missing_files(wishes.root, wanted)
    absent = lacking(wanted, missing)
    runs = [run for run in wanted if run not in absent]
    if wanted and not runs and not work.goes_on:
        raise missing_sets(missing, wishes.root)
    for note in notes_before(wishes.root, runs) if work.tells_notes else ():
        work.reporter.note(note)
    by_images = live_among(wishes.root, runs)
    result = Obtained(missing=missing)
    failures = result.failures if work.goes_on else None
    replays = [run for run in runs if run not in by_images]
    made = run_all(wishes.root, replays, work.jobs, None, work.reporter, work.keeping, failures)
    live = [run for run in runs if run in by_images]
    # Kept live runs are shown if live runs are not allowed, even if all others are run again.
    fresh = work.keeping.fresh and work.live is not None
    before = kept_before(wishes.root, live, replace(work.keeping, fresh=fresh))
    left = [run for run in live if run not in before]
    if work.live is None or not left:
        made += before.values()
        result.left_out = dict.fromkeys(left)
    else:
        work.reporter.note(counted(len(left), "live run"))
        jobs = work.jobs if isinstance(work.jobs, OnRay) else 1
        made += run_all(wishes.root, live, jobs, work.live, work.reporter, work.keeping, failures)
    result.records = {record.settings: record for record in made if not record.unfinished}
    result.is_unfinished = any(record.unfinished for record in made)
    return result


def content(
    table: PaperTable,
    wishes: Wishes,
    records: Mapping[RunSettings, Record],
    command: str = "",
) -> TableContent:
    """A table's measured numbers beside the printed ones, with how they were measured."""
    runs = [run for run in all_runs(wishes, [table]) if run in records]
    return TableContent(
        table,
        compare(table, wishes, records),
        [*_measured_with(runs, wishes), *_about(table, wishes), *_listed(runs, wishes)],
        command,
    )


def _measured_with(runs: Iterable[RunSettings], wishes: Wishes) -> list[str]:
    seeds = dict.fromkeys(str(run.stream.seed) for run in runs)
    encoders = ", ".join(dict.fromkeys(run.encoder for run in runs))
    many = "s" * (len(seeds) > 1)
    line = f"measured: {encoders}, preset {wishes.preset}, seed{many} {', '.join(seeds)}"
    return [line] * bool(seeds)


def _not_run(table: PaperTable, wishes: Wishes) -> list[str]:
    """Which rows are not run as they need more than features, and what to type to have them."""
    needing = {asked["method"] for asked in table.rows.values()} & _NAMED_BY.keys()
    left = [method for method in _NAMED_BY if method in needing and is_left_out(method, wishes)]
    options = " ".join(f"--set {method}.{_NAMED_BY[method]}" for method in left)
    line = f"not run: {' and '.join(left)}, which need more than features: {options}"
    return [line] * bool(left)


def _listed(runs: Iterable[RunSettings], wishes: Wishes) -> list[str]:
    """Of which pairs a folder of lists says the OOD images, and of which they are drawn."""
    if wishes.ood_items is None:
        return []
    pairs = {(r.id_set, r.ood_set, r.stream.ratio): r.stream.ood_items for r in runs if r.ood_set}
    drawn = [f"{pair[0]} with {pair[1]}" for pair, listed in pairs.items() if not listed]
    line = f"OOD images: by the lists in {wishes.ood_items}"
    return [line + f"; drawn, for want of a list: {first_of(drawn, 3)}" * bool(drawn)]


def _about(table: PaperTable, wishes: Wishes) -> list[str]:
    """What is not as in the paper: prompts, settings, sets, the encoder."""
    changes = [f"prompt '{wishes.prompt}'"] * bool(wishes.prompt)
    changes += [
        f"{method}.{option_name(declared(method)[name])}={value}"
        for method, name, value in wishes.own
    ]
    lines = [f"not as published: {', '.join(changes)}"] * bool(changes)
    lines += _not_run(table, wishes)
    if wishes.is_built_in:
        return [*lines, "built-in sets stand in for the paper's; equal rows are one"]
    if wishes.named and not any(map(wishes.is_of_paper, table.encoders)):
        theirs = ", ".join(table.encoders)
        lines.append(f"nothing is published of {wishes.named.slug} here, but of {theirs}")
    elif wishes.named and wishes.named.folder and wishes.named.folder not in known_folders():
        lines.append(f"the paper's numbers are of {USUAL_ENCODER} with OpenAI's weights")
    return lines
