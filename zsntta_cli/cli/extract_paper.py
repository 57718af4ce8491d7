"""`extract --paper`, `paper --extract`: what tables and figures need, as far as it is at hand."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from zsntta_cli.cli.command import say
from zsntta_cli.errors import EncoderError
from zsntta_cli.progress import Reporter
from zsntta_cli.settings import ExtractSettings

if TYPE_CHECKING:
    from zsntta_cli.extraction.plan import ExtractPlan, Failures
    from zsntta_cli.paper.extracting import PaperExtraction
    from zsntta_cli.paper.runs import Wishes
    from zsntta_cli.simulation.runs import RunSettings


def extract_for(
    runs: "Sequence[RunSettings]",
    wishes: "Wishes",
    plan: "ExtractPlan",
    settings: ExtractSettings,
    reporter: Reporter | None,
) -> "Failures":
    """Extract what runs of the paper need and is at hand, and say where to get the rest.

    `plan` says where sets lie, and how many images of each are taken at most. Without a reporter it
    is only said what would be extracted. An encoder that cannot be had ends its own sets and not
    those of the others. What could not be extracted is returned, with the reason.
    """
    from zsntta_cli.cache.folder import folder_name
    from zsntta_cli.extraction.extractor import summary
    from zsntta_cli.extraction.plan import extract, foresee
    from zsntta_cli.paper.extracting import paper_extractions

    extractions = paper_extractions(wishes, runs, plan.data_root, plan.limit)
    failures: Failures = {}
    for extraction in extractions:
        choice, folder = extraction.choice, folder_name(extraction.choice)
        sets, pools = extraction.sets, extraction.pools
        of_encoder = replace(plan, datasets=sets, pools=pools, partners=False)
        if reporter is None:
            for line in foresee(of_encoder, choice, settings):
                say(line)
            continue
        of_sets: Failures = {}
        try:
            for extracted in extract(of_encoder, choice, settings, reporter, of_sets):
                say(summary(extracted))
        except EncoderError as error:
            failures[f"all of {folder}"] = error
        failures |= {f"{folder}/{name}": reason for name, reason in of_sets.items()}
    _say_what_is_absent(extractions)
    return failures


def _say_what_is_absent(extractions: "Sequence[PaperExtraction]") -> None:
    """Say which sets are neither there nor fetched by themselves, and how each is to be had."""
    from zsntta_cli.datasets import CATALOGUE
    from zsntta_cli.datasets.names import SetName

    absent = (name for extraction in extractions for name in extraction.absent)
    entries = {base: CATALOGUE[base] for base in (SetName.parse(name).base for name in absent)}
    if not entries:
        return
    say("Sets that are not available:")
    for base, entry in entries.items():
        megabytes = f"{entry.megabytes:,} MB" if entry.megabytes else ""
        by = "get" if entry.files else "show"
        say(f"  {base:<16}{entry.images:>7,} images {megabytes:>10}  zsntta datasets {by} {base}")
    if fetched := [base for base, entry in entries.items() if entry.files]:
        say(f"zsntta datasets get {' '.join(fetched)}")
