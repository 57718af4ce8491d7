"""The runs that tables and figures need: which are kept, those that are made, what they give."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from zsntta_cli.cache.lacking import making_all
from zsntta_cli.errors import StoreError, counted, first_of
from zsntta_cli.paper.compare import compare
from zsntta_cli.paper.runs import Wishes, is_left_out
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

_TYPED = 12  # feature files at most that a proposed command names
# What names that which rows need beside features (docs/methods.md).
_NAMED_BY = {"clipn": "no-text=FILE.npy", "neglabel": "words=wordnet"}


@dataclass
class Measuring:
    """Runs taken from the store or made: their records so far, and why others have none."""

    wishes: Wishes
    reporter: Reporter
    keeping: Keeping
    jobs: Jobs = 1
    live: LiveFactory | None = None  # None: live methods are not run
    goes_on: bool = False  # other runs go on if some lack features or fail
    tells_notes: bool = True  # what is to be known of runs; else it stands below their table
    records: dict[RunSettings, Record] = field(default_factory=dict)  # of finished runs
    missing: dict[str, dict[str, None]] = field(default_factory=dict)  # sets, by encoder's folder
    left_out: set[RunSettings] = field(default_factory=set)  # live, and not asked for
    failures: Failures = field(default_factory=Failures)  # of runs, while the others went on
    is_unfinished: bool = False  # Ctrl-C stopped a live run

    def obtain(self, wanted: Sequence[RunSettings], with_gradients: bool = False) -> None:
        """Run what is not kept yet: replays first, and live methods only if they are allowed.

        Raises:
            StoreError: no run has all of its features, and others do not go on.
        """
        root, keeping = self.wishes.root, replace(self.keeping, gradients=with_gradients)
        missing = missing_files(root, wanted)
        absent = lacking(wanted, missing)
        if wanted and absent.issuperset(wanted) and not self.goes_on:
            sets = " and ".join(f"{len(names)} by {folder}" for folder, names in missing.items())
            raise StoreError(
                f"feature files that are not in {root}/: {sets}: {way_to_make(missing, root)}"
            )
        made = () if with_gradients else self.records  # a record may lack them
        runs = [run for run in wanted if run not in absent and run not in made]
        for folder, names in missing.items():
            self.missing.setdefault(folder, {}).update(dict.fromkeys(names))
        for note in notes_before(root, runs) if self.tells_notes else ():
            self.reporter.note(note)
        images = live_among(root, runs)
        live = [run for run in runs if run in images]
        self._make([run for run in runs if run not in images], self.jobs, keeping)
        # Kept live runs are shown if live runs are not allowed, even if all others are run again.
        fresh = keeping.fresh and self.live is not None
        kept = kept_before(root, live, replace(keeping, fresh=fresh))
        self.records |= kept
        if self.live is None:
            self.left_out |= {*live} - {*kept}
        elif len(live) > len(kept):
            self.reporter.note(counted(len(live) - len(kept), "live run"))
            self._make(live, self.jobs if isinstance(self.jobs, OnRay) else 1, keeping)
        self.left_out -= self.records.keys()

    def _make(self, runs: Sequence[RunSettings], jobs: Jobs, keeping: Keeping) -> None:
        """Run what is not kept of some runs."""
        failures: Failures | None = Failures() if self.goes_on else None
        root = self.wishes.root
        made = run_all(root, runs, jobs, self.live, self.reporter, keeping, failures)
        for record in made:
            if record.unfinished:
                self.is_unfinished = True
            else:
                self.records[record.settings] = record
        both = self.failures | (failures or {})
        self.failures = {run: why for run, why in both.items() if run not in self.records}

    def content(self, table: PaperTable, command: str) -> TableContent:
        """A table's measured numbers beside the printed ones, with how they were measured."""
        numbers = compare(table, self.wishes, self.records)
        measured = dict.fromkeys(run.settings for number in numbers for run in number.records)
        return TableContent(table, numbers, about(table, [*measured], self.wishes), command)


def lacking(
    runs: Iterable[RunSettings], missing: Mapping[str, Collection[str]]
) -> set[RunSettings]:
    """The runs of which a feature file is missing."""
    files = {(folder, name) for folder, names in missing.items() for name in names}
    return {run for run in runs if not files.isdisjoint(needed_files([run]))}


def about(table: PaperTable, runs: Sequence[RunSettings], wishes: Wishes) -> list[str]:
    """How a table was measured: encoder, seeds, and what is not as in the paper."""
    lines = []
    if runs:
        seeds = list(dict.fromkeys(str(run.stream.seed) for run in runs))
        encoders = ", ".join(dict.fromkeys(run.encoder for run in runs))
        of_seeds = f"seed{'s' * (len(seeds) > 1)} {', '.join(seeds)}"
        lines.append(f"measured: {encoders}, preset {wishes.preset}, {of_seeds}")
    changes = [f"prompt '{wishes.prompt}'"] * bool(wishes.prompt)
    for method, name, value in wishes.own:
        changes.append(f"{method}.{option_name(declared(method)[name])}={value}")
    lines += [f"not as published: {', '.join(changes)}"] * bool(changes)
    methods = [asked["method"] for asked in table.rows.values()]
    left = [name for name in _NAMED_BY if name in methods and is_left_out(name, wishes)]
    if left:
        options = " ".join(f"--set {name}.{_NAMED_BY[name]}" for name in left)
        lines.append(f"not run: {' and '.join(left)}, which need more than features: {options}")
    if wishes.is_built_in:
        lines.append("built-in sets stand in for the paper's; equal rows are one")
    elif wishes.named and not any(map(wishes.is_of_paper, table.encoders)):
        theirs = ", ".join(table.encoders)
        lines.append(f"nothing is published of {wishes.named.slug} here, but of {theirs}")
    elif wishes.named and wishes.named.folder and wishes.named.folder not in known_folders():
        lines.append(f"the paper's numbers are of {USUAL_ENCODER} with OpenAI's weights")
    if wishes.ood_items:
        noisy = dict.fromkeys(
            f"{r.id_set} with {r.ood_set}" for r in runs if r.ood_set and not r.stream.ood_items
        )
        drawn = f"; drawn, for want of a list: {first_of([*noisy], 3)}" * bool(noisy)
        lines.append(f"OOD images: by the lists in {wishes.ood_items}{drawn}")
    return lines


def way_to_make(missing: Mapping[str, Collection[str]], root: Path) -> str:
    """How to make missing feature files, by encoder: what to type, or to add where it is long."""
    if sum(map(len, missing.values())) > _TYPED:
        return "add --extract, which encodes those at hand"
    return f"type {making_all({folder: [*names] for folder, names in missing.items()}, root)}"
