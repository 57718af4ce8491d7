"""The board as a Markdown page: its tables, missing methods, tuned settings, and each pair."""

import math
from collections.abc import Iterable, Iterator, Sequence

from zsntta_cli import __version__
from zsntta_cli.methods import WORDS
from zsntta_cli.report.board.contenders import Contender
from zsntta_cli.report.board.lines import (
    OTHER_COLUMNS,
    WORST,
    BoardColumn,
    BoardRow,
    Results,
    board_rows,
    columns_of_a_page,
    columns_of_a_pair,
    pair_contest,
)
from zsntta_cli.report.board.plan import Pair, Plan
from zsntta_cli.report.forms import draw
from zsntta_cli.report.pairs import SPEAKS_ONCE, PairContest
from zsntta_cli.report.sheet import Sheet, SheetRow
from zsntta_cli.report.tables import marked_text
from zsntta_cli.settings import NO_NOISE
from zsntta_cli.simulation.metrics import METRICS
from zsntta_cli.simulation.notes import strongest

INJECTIONS = {NO_NOISE: "nothing injected", "gaussian": "Gaussian noise injected"}
TUNED_ON = """\
- `ridge`, and the classifiers behind it: all constants were set on OpenAI ViT-B/32 features of
  ImageNet few-shot, Cars and Pets24, on their pairs with DTD, SUN397 and each other and on splits
  of their classes. On these sets its figures are on tuning data; the embedded encoder was a check.
- `adand, tuned` is ours. Its four values were chosen on five of these pairs (ImageNet few-shot and
  Cars with DTD and SUN397, Pets24 with DTD) and on the built-in sets, all of which are tuning data.
- `adand` and `zs-clip` have the paper's values, and `adand, official` those of its released code.
- All others have their papers' values, which their authors chose on sets like ImageNet with
  natural images as OOD. Nothing of them was tuned here.
"""


def page(plan: Plan, results: Results) -> str:
    """The whole page."""
    parts = [f"# Board of methods\n\n{_about(plan, results)}"]
    for noise in plan.noises:
        parts += [f"## All pairs, {INJECTIONS[noise]}\n", _table(plan, results, noise)]
        parts += _over_pairs(pair_contest(plan, results, noise))
        parts += [f"**Other streams, {INJECTIONS[noise]}**\n", _others(plan, results, noise)]
    if plan.left_out:
        labels = [f"- `{label}`: {why}.\n" for label, why in plan.left_out.items()]
        parts += ["## Not run\n", "".join(labels)]
    parts.append(f"## What was tuned on what\n\n{TUNED_ON}")
    for pair in plan.pairs:
        parts.append(f"## {pair}, 50 % noise\n")
        for noise in plan.noises:
            parts.append(f"**{INJECTIONS[noise].capitalize()}**\n")
            parts.append(_table(plan, results, noise, pair))
    parts.append(f"Made by `zsntta board`, zsntta {__version__}.\n")
    return "\n".join(parts)


def _about(plan: Plan, results: Results) -> str:
    """What is compared, and how to read a cell."""
    seeds, count = plan.seeds, len(plan.pairs)
    paragraphs = [
        f"Features `{plan.encoder}`, {count} pair{'s' * (count > 1)}: "
        f"{'; '.join(map(str, plan.pairs))}. All rows saw the same streams "
        f"({len({spot[1:] for spot in results}):,} in all, seeds {', '.join(map(str, seeds))}). "
        "At 0 % an ID set is alone, each image once. `natural` has all images of both sets, "
        "each once. `class` comes class after class, `dirichlet:γ` is StatA's online order "
        "(docs/streams.md), and all other streams are shuffled.",
        "A cell has the mean over pairs in % and its standard deviation over seeds. Bold is the "
        "best mean of a column. Italics are on means that are not distinguishable from it, by a t "
        "test at 5 % on the means over pairs of five seeds or more, with an error that is pooled "
        "over the rows, corrected by Holm for the number of rivals. Seeds show the same images in "
        "other orders, so the marks speak of these pairs and of no others. A method that sees the "
        "whole stream before it decides is shown but never marked. A score without a decision rule "
        "has only an AUROC. `adand` as published injects noise, so it lacks a part of itself "
        "where nothing is injected.",
        "FPR95 has two usual definitions: (ID+) is the share of OOD samples accepted where 95 % of "
        "the ID samples are, (OOD+) the share of ID samples rejected where 95 % of the OOD samples "
        "are. The worst tenth is the mean of the worst tenth of a method's runs (pair and seed), "
        "and of at least one run.",
        "µs is the time per item of the method alone, as the median of its runs. Features and "
        "zero-shot scores were computed before, and the machine may have done other work.",
        *_words(plan),
        *strongest(note for record in results.values() for note in record.notes),
    ]
    return "\n\n".join(paragraphs) + "\n"


def _words(plan: Plan) -> Iterator[str]:
    """The word lists of the methods that need words."""
    labels_by_words: dict[str, list[str]] = {}
    for contender in plan.running:
        if WORDS in contender.inputs:
            words = [(id_set, *plan.words_of(contender, id_set)) for id_set in plan.id_sets]
            text = "; ".join(f"{id_set} `{name}` ({count:,})" for id_set, name, count in words)
            labels_by_words.setdefault(text, []).append(f"`{contender.label}`")
    for text, labels in labels_by_words.items():
        yield f"Words of {', '.join(labels)}: {text}."


def _table(plan: Plan, results: Results, noise: str, pair: Pair | None = None) -> str:
    columns = columns_of_a_pair() if pair else columns_of_a_page()
    worst = f"{WORST.head}, worst tenth"
    heads = (*(column.head for column in columns), worst, "µs", "given besides")
    body = [
        SheetRow((f"`{row.contender.label}`",), {
            "": [
                *_texts(row, columns), METRICS[WORST.metric].text(row.worst), cost(row),
                ", ".join(_besides(row.contender, noise)),
            ],
        })
        for row in board_rows(plan, results, noise, pair, columns)
    ]  # fmt: skip
    return draw([Sheet("", ("method",), {"": heads}, body)], "markdown")


def _others(plan: Plan, results: Results, noise: str) -> str:
    """Acc_H in other orders and at the natural ratio."""
    body = [
        SheetRow((f"`{row.contender.label}`",), {"": _texts(row, OTHER_COLUMNS)})
        for row in board_rows(plan, results, noise, columns=OTHER_COLUMNS)
        if row.contender.decides
    ]
    heads = tuple(column.head for column in OTHER_COLUMNS)
    return draw([Sheet("", ("method",), {"": heads}, body)], "markdown")


def _besides(contender: Contender, noise: str) -> list[str]:
    """What each method was given besides images and names: inputs, and time."""
    late = f"up to {contender.delay:,} items of delay"
    return [*contender.given(noise), *[late] * bool(contender.delay)]


def _over_pairs(contest: PairContest) -> list[str]:
    """All methods against the best and against the baseline, and what the p-values mean."""
    if not contest.is_contest:
        return []
    rows = [SheetRow((f"`{row.labels[0]}`",), row.values) for row in contest.rows()]
    sheet = Sheet("", ("method",), contest.columns, rows)
    sentences = [SPEAKS_ONCE, *contest.about(), *contest.notes()]
    head = f"**{contest.metric.head} at 50 % noise over {contest.size}**\n"
    return [head, draw([sheet], "markdown"), " ".join(sentences) + "\n"]


def _texts(row: BoardRow, columns: Sequence[BoardColumn]) -> list[str]:
    return [
        marked_text(column.text(value), mark)
        for value, column, mark in zip(row.values, columns, row.marks, strict=True)
    ]


def cost(row: BoardRow) -> str:
    """Microseconds per item, to three digits."""
    time = row.microseconds
    if math.isnan(time):
        return "-"
    return f"{time:,.0f}" if time >= 100 else f"{time:.3g}"


def not_run(plan: Plan) -> Iterable[str]:
    """A line for each reason why methods are not run, with their names."""
    reasons = dict.fromkeys(plan.left_out.values())
    for reason in reasons:
        labels = (label for label, why in plan.left_out.items() if why == reason)
        yield f"note: not run: {', '.join(labels)} ({reason})"
