"""`zsntta extract --paper`: all that the paper's tables and figures need, as far as it is there."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from zsntta_cli.cli.command import say
from zsntta_cli.cli.output import NOTHING_DONE
from zsntta_cli.errors import DatasetError, EncoderError, first_line
from zsntta_cli.progress import Reporter
from zsntta_cli.settings import FP32, EncoderChoice, ExtractSettings

if TYPE_CHECKING:
    from zsntta_cli.extraction.plan import ExtractPlan, Failures
    from zsntta_cli.paper.extracting import PaperExtraction


@dataclass(frozen=True)
class PaperWish:
    """Where sets lie and how many images of each are taken at most, and of which encoder alone."""

    plan: "ExtractPlan"  # without any set
    choice: EncoderChoice | None
    precision: str = FP32  # of the paper's encoders, where none is named


def extract_paper(
    wish: PaperWish, settings: ExtractSettings, reporter: Reporter, dry_run: bool
) -> None:
    """Extract what is at hand of all that the paper needs, and say where to get the rest.

    An encoder that cannot be had ends its own sets and not those of the others.

    Raises:
        DatasetError: sets that are at hand and could not be extracted.
    """
    from zsntta_cli.cache.folder import folder_name
    from zsntta_cli.extraction.extractor import summary
    from zsntta_cli.extraction.plan import extract, foresee
    from zsntta_cli.paper.extracting import paper_extractions
    from zsntta_cli.paper.runs import Wishes

    wishes = Wishes(settings.features_dir, wish.choice, wish.precision)
    extractions = paper_extractions(wishes, wish.plan.data_root, wish.plan.limit)
    failures: Failures = {}
    for extraction in extractions:
        choice = extraction.choice
        sets, pools = extraction.sets, extraction.pools
        plan = replace(wish.plan, datasets=sets, pools=pools, partners=False)
        if dry_run:
            for line in foresee(plan, choice, settings):
                say(line)
            continue
        of_encoder: Failures = {}
        folder = folder_name(choice)
        try:
            for extracted in extract(plan, choice, settings, reporter, of_encoder):
                say(summary(extracted))
        except EncoderError as error:
            failures[f"all of {folder}"] = error
        failures |= {f"{folder}/{name}": reason for name, reason in of_encoder.items()}
    _say_what_is_absent(extractions)
    for name, reason in failures.items():
        reporter.note(f"not extracted: {name}: {first_line(reason)}")
    if dry_run:
        say(NOTHING_DONE)
    if failures:
        raise DatasetError(
            f"not all available sets were extracted, {len(failures)} failed: {', '.join(failures)}."
        )


def _say_what_is_absent(extractions: "Sequence[PaperExtraction]") -> None:
    """Say which sets are neither there nor fetched by themselves, and where to get each."""
    from rich.table import Table
    from rich.text import Text

    from zsntta_cli import datasets
    from zsntta_cli.datasets.names import SetName
    from zsntta_cli.progress import console

    bases = dict.fromkeys(
        SetName.parse(name).base for extraction in extractions for name in extraction.absent
    )
    if not bases:
        return
    table = Table(title="Sets that are not available", title_justify="left")
    for head in ("Set", "Images", "MB", "Where to get it", "What to put into the data root"):
        table.add_column(head, justify="right" if head in ("Images", "MB") else "left")
    for base in bases:
        entry = datasets.CATALOGUE[base]
        megabytes = f"{entry.megabytes:,}" if entry.megabytes else ""
        table.add_row(*map(Text, (base, f"{entry.images:,}", megabytes, entry.home, entry.layout)))
    console().print(table)
    if fetched := [base for base in bases if datasets.CATALOGUE[base].files]:
        say(f"zsntta datasets get {' '.join(fetched)}")
