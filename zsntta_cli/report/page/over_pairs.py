"""Methods over ID-OOD pairs: against the best, against the baseline, and their ranks drawn."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from zsntta_cli.report.forms.diagram import draw_diagram
from zsntta_cli.report.page.document import PageSheet, render
from zsntta_cli.report.page.headline import features_of, kind_of
from zsntta_cli.report.page.rows import RunRow
from zsntta_cli.report.pairs import SPEAKS_ONCE, PairContest, p_phrase
from zsntta_cli.report.plots.over_pairs import diagram
from zsntta_cli.report.sheet import SheetRow
from zsntta_cli.report.tables import run_notes
from zsntta_cli.results.frame import ResultStream, label, shown, varying
from zsntta_cli.results.pairs import ByPair, RankTest, rank_test
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


def contests(rows: Iterable[RunRow], baseline: str) -> dict[Place, list[PairContest]]:
    """The comparisons over pairs: for each kind of stream at each ratio, by one metric or two.

    Methods that see the whole stream before they decide are not compared.
    """
    rivals = [row for row in rows if row.competes]
    names = varying(rivals)
    groups: dict[Place, dict[str, list[RunRow]]] = {}
    for row in rivals:
        place = Place(row.stream._replace(id_set=""), row.ratio)
        groups.setdefault(place, {}).setdefault(label(row, names), []).append(row)
    every = {
        place: list(_contests(place, groups[place], baseline))
        for place in sorted(groups, key=_order)
    }
    return {place: of_place for place, of_place in every.items() if of_place}


def _order(place: Place) -> tuple[Any, ...]:
    return place.stream, ratio_place(place.ratio)


def _contests(place: Place, groups: Groups, baseline: str) -> Iterator[PairContest]:
    bases = [name for name, rows in groups.items() if rows[0].method == baseline]
    base = bases[0] if len(bases) == 1 else ""
    for metric in ("acc_h", "auroc") if place.ratio else ("acc_s",):
        by_pair = {name: _by_pair(rows, METRICS[metric]) for name, rows in groups.items()}
        having = {name: values for name, values in by_pair.items() if _has_value(values)}
        records = [run.record for name in having for row in groups[name] for run in row.every_run]
        notes = run_notes(records, [METRICS[metric]])
        contest = PairContest(METRICS[metric], having, base, notes)
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
    sentences = dict.fromkeys(text for contest in every for text in contest.about())
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


# Ranks, drawn.


def diagrams(places: Mapping[Place, Sequence[PairContest]]) -> Markup:
    """A critical-difference diagram for each kind of stream and ratio that allows one."""
    tests = {
        (place, contest.metric): rank_test(contest.whole, contest.metric)
        for place, of_place in places.items()
        for contest in of_place[:1]
    }
    drawings = [_drawing(place, metric, test) for (place, metric), test in tests.items() if test]
    if not drawings:
        return Markup("")
    text = (
        "Mean ranks over pairs; 1 is the best. A bar joins methods that are not told apart: their "
        "mean ranks are closer than Nemenyi’s critical difference at 5 %, or Friedman’s test does "
        "not find that any differ. Pairs of an ID set share its images and count as one."
    )
    part = {"legend": Markup(""), "drawings": drawings, "is_wide": True}
    return render("figures.html", about=text, parts={"": [part]})


def _drawing(place: Place, metric: Metric, test: RankTest[str]) -> dict[str, object]:
    panel = diagram(place.title, test, metric)
    rows = [SheetRow((name,), {"": [f"{rank:.2f}"]}) for name, rank in test.mean_ranks.items()]
    title = f"{place.title}: mean ranks by {metric.head}"
    notes = [f"Friedman’s test: {p_phrase(test.p)}."]
    notes += [f"Not told apart: {', '.join(names)}." for names in test.groups]
    numbers = PageSheet(title, ("Method",), {"": ("Mean rank",)}, {"": rows}, notes)
    return {"title": panel.title, "svg": Markup(draw_diagram(panel)), "numbers": numbers}
