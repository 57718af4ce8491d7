"""The runs that tables and figures need: which are kept, those that are made, what they give."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from zsntta_cli.cache.lacking import making_all
from zsntta_cli.errors import StoreError, first_of
from zsntta_cli.paper.compare import compare
from zsntta_cli.paper.runs import Wishes, is_left_out
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

_TYPED = 12  # feature files at most that a proposed command names
# What names that which rows need beside features (docs/methods.md).
_NAMED_BY = {"clipn": "no-text=FILE.npy", "neglabel": "words=wordnet"}


@dataclass
class Measuring:
    """Runs taken from the store or made: their records so far, and why others have none."""

    wishes: Wishes
    runner: Runner
    keeping: Keeping
    runs_live: bool = False
    goes_on: bool = False  # other runs go on if some lack features or fail
    tells_notes: bool = True  # what is to be known of runs; else it stands below their table
    records: dict[RunSettings, Record] = field(default_factory=dict)  # of finished runs
    missing: dict[str, dict[str, None]] = field(default_factory=dict)  # sets, by encoder's folder
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
        if wanted and not seen.kept and not seen.to_run and not self.goes_on:
            sets = " and ".join(f"{len(names)} by {f}" for f, names in seen.missing.items())
            raise StoreError(
                f"feature files that are not in {root}/: {sets}: {way_to_make(seen.missing, root)}"
            )
        for folder, names in seen.missing.items():
            self.missing.setdefault(folder, {}).update(dict.fromkeys(names))
        lacking = {*seen.lacking}
        runs = [run for run in wanted if run not in lacking]
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

    def content(self, table: PaperTable, command: str) -> TableContent:
        """A table's measured numbers beside the printed ones, with how they were measured."""
        numbers = compare(table, self.wishes, self.records)
        measured = dict.fromkeys(run.settings for number in numbers for run in number.records)
        return TableContent(table, numbers, about(table, [*measured], self.wishes), command)


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
