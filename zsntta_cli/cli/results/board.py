"""`zsntta board`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zsntta_cli.cli import completion
from zsntta_cli.cli.command import misused, say
from zsntta_cli.cli.dry import DryRun, say_foresight
from zsntta_cli.cli.options import (
    EncoderOptions,
    FeaturesDir,
    JobOptions,
    KeepingOptions,
    with_groups,
)
from zsntta_cli.cli.output import form_of, put
from zsntta_cli.settings import FEATURES, EncoderChoice

if TYPE_CHECKING:
    from zsntta_cli.report.board.plan import Pair

_SEEDS = 5


@with_groups
def board(
    *,
    ctx: typer.Context,
    pair: Annotated[
        list[str] | None,
        typer.Option(metavar="ID,OOD", help="Sets. [the model's ID set, its cached partners]"),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Methods in the rows of the board. [all]",
            autocompletion=completion.methods,
        ),
    ] = None,
    words: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[ID=]LIST",
            help="Word lists, with commas between them, or those of one ID set. [the cached one]",
        ),
    ] = None,
    seed: Annotated[
        list[int] | None, typer.Option(help="Seed of the streams. [0 to 4]", min=0)
    ] = None,
    jobs: JobOptions,
    encoder: EncoderOptions,
    features_dir: FeaturesDir = FEATURES,
    store: KeepingOptions,
    output: Annotated[
        Path | None, typer.Option("--output", "--out", help="File for the page, in Markdown.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Run all methods on the same streams, for one table.

    The page also has a table of each pair, with all standard deviations.

    The noise ratios are 0, 5, 25, 50 and 75 %. Injected Gaussian noise is added if its features are
    cached. What was run before is kept.
    """
    from zsntta_cli.cache.folder import folder_name
    from zsntta_cli.progress import ConsoleReporter
    from zsntta_cli.report.board.contenders import contenders
    from zsntta_cli.report.board.lines import obtain_results
    from zsntta_cli.report.board.page import not_run, page
    from zsntta_cli.report.board.plan import Plan
    from zsntta_cli.report.board.screen import screen

    form_of(output, {".md": "markdown"}, default="markdown")
    choice = encoder.choice()
    plan = Plan(
        features_dir, folder_name(features_dir, choice), _pairs(features_dir, choice, pair or ()),
        contenders(method or ()), tuple(dict.fromkeys(seed or range(_SEEDS))), _words(words or ()),
    )  # fmt: skip
    reporter = ConsoleReporter()
    for line in not_run(plan):
        reporter.note(line)
    if dry_run:
        say_foresight(features_dir, list(plan.runs().values()), store.keeping(), ctx.params)
        return
    results = obtain_results(plan, jobs.chosen(), reporter, store.keeping())
    put(screen(plan, results), None)
    if output:
        put(page(plan, results), output)
        say(str(output))


def _pairs(root: Path, choice: EncoderChoice, texts: Sequence[str]) -> "tuple[Pair, ...]":
    """The pairs that are named, of features that are there; or those that simulate would run.

    Raises:
        UsageError: a text of another form.
        MissingFeatures: a set is not cached.
    """
    from zsntta_cli.cache.folder import find, folder_name
    from zsntta_cli.report.board.plan import Pair
    from zsntta_cli.results.grid import Grid

    pairs = []
    if not texts:
        runs = Grid(("zs-clip",), choice).runs(root)
        pairs = [Pair(run.id_set, run.ood_set) for run in runs]
    for text in texts:
        id_set, _, ood_set = text.partition(",")
        if not ood_set or ood_set == id_set:
            raise misused(f"--pair is '{text}', must be ID,OOD: two sets.")
        pairs.append(Pair(id_set, ood_set))
    find(root, [name for pair in pairs for name in pair if name], folder_name(root, choice))
    return tuple(dict.fromkeys(pairs))


def _words(texts: Sequence[str]) -> dict[str, str]:
    """Word lists by ID set; those of all sets under ALL_SETS."""
    from zsntta_cli.report.board.plan import ALL_SETS

    pairs = (text.rpartition("=") for text in texts)
    return {id_set if equals else ALL_SETS: lists for id_set, equals, lists in pairs}
