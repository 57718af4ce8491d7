"""Methods over ID-OOD pairs, each against the best."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from zsntta_cli.report.page.document import PageSheet
from zsntta_cli.report.page.headline import features_of, kind_of
from zsntta_cli.report.page.rows import RunRow
from zsntta_cli.report.pairs import SPEAKS_ONCE, PairContest
from zsntta_cli.report.tables import run_notes
from zsntta_cli.results.compare import ByPair
from zsntta_cli.results.frame import ResultStream, labels, shown
from zsntta_cli.settings.ratios import Ratio, ratio_place
from zsntta_cli.simulation.metrics import METRICS, Metric

Groups = Mapping[str, Sequence[RunRow]]  # rows on all ID sets, by what they are called


class Place(NamedTuple):
    """What comparable streams have in common besides their sets."""

    stream: ResultStream  # of no ID set
    ratio: Ratio

    @property
    def title(self) -> str:
        """The place in words."""
        other = f"OTHER FEATURES of the same name ({features_of(self.stream)})"
        noise = f"noise {shown('ratio', self.ratio)}" if self.ratio else "clean streams"
        parts = [self.stream.encoder, kind_of(self.stream), other * any(self.stream.features)]
        return ", ".join([*filter(None, parts), noise])


def contests(rows: Iterable[RunRow]) -> dict[Place, list[PairContest]]:
    """The comparisons over pairs: for each kind of stream at each ratio, by one metric or two.

    Methods that see the whole stream before they decide are not compared.
    """
    rivals: dict[Place, list[RunRow]] = {}
    for row in rows:
        if row.competes:
            place = Place(row.stream._replace(id_set=""), row.ratio)
            rivals.setdefault(place, []).append(row)
    every = {p: list(_contests(p, _groups(rivals[p]))) for p in sorted(rivals, key=_order)}
    return {place: of_place for place, of_place in every.items() if of_place}


def _groups(rows: Sequence[RunRow]) -> Groups:
    """Rows of one place, those of each name together."""
    groups: dict[str, list[RunRow]] = {}
    for row, name in labels(rows).items():
        groups.setdefault(name, []).append(row)
    return groups


def _order(place: Place) -> tuple[Any, ...]:
    return place.stream, ratio_place(place.ratio)


def _contests(place: Place, groups: Groups) -> Iterator[PairContest]:
    for metric in ("acc_h", "auroc") if place.ratio else ("acc_s",):
        by_pair = {name: _by_pair(rows, METRICS[metric]) for name, rows in groups.items()}
        having = {name: values for name, values in by_pair.items() if _has_value(values)}
        records = [run.record for name in having for row in groups[name] for run in row.every_run]
        notes = run_notes(records, [METRICS[metric]])
        contest = PairContest(METRICS[metric], having, notes)
        if contest.is_contest:
            yield contest


def _by_pair(rows: Sequence[RunRow], metric: Metric) -> ByPair:
    return {
        (row.stream.id_set, ood_set): row.by_seed(ood_set, metric.name)
        for row in rows
        for ood_set in row.runs
    }


def _has_value(by_pair: ByPair) -> bool:
    """Whether a metric is defined for a row: a score without decisions has no accuracy."""
    return any(value == value for by_seed in by_pair.values() for value in by_seed.values())


def about(places: Mapping[Place, Sequence[PairContest]]) -> Markup:
    """How to read the tables, and why there are no p-values, if there are none."""
    every = [contest for of_place in places.values() for contest in of_place]
    sentences = dict.fromkeys(contest.about() for contest in every)
    paragraphs = [SPEAKS_ONCE, *sentences] if every else []
    return Markup("").join(Markup("<p>{}</p>\n").format(text) for text in paragraphs)


def sheets(places: Mapping[Place, Sequence[PairContest]]) -> Iterator[PageSheet]:
    """A table for each kind of stream and ratio."""
    for place, of_place in places.items():
        columns = {name: heads for contest in of_place for name, heads in contest.columns.items()}
        bodies = {contest.metric.head: contest.rows() for contest in of_place}
        notes = dict.fromkeys(note for contest in of_place for note in contest.notes())
        title = f"{place.title}: over {of_place[0].size}, in %"
        yield PageSheet(title, ("Method",), columns, bodies, list(notes))
