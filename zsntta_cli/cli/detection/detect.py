"""`zsntta detect`."""

from typing import Annotated

import typer

from zsntta_cli.cli.detection.options import (
    FOUND,
    DecisionOptions,
    ImageOptions,
    ResultOptions,
)
from zsntta_cli.cli.options import EncoderOptions, FeaturesDir, option
from zsntta_cli.cli.output import PAGES, form_of
from zsntta_cli.settings import FEATURES, ExtractSettings


def detect(
    *,
    images: ImageOptions,
    encoder: EncoderOptions,
    device: Annotated[str, option(help="auto, cpu, cuda, cuda:1 …")] = "auto",
    features_dir: FeaturesDir = FEATURES,
    decision: DecisionOptions,
    result: ResultOptions,
) -> None:
    """Tell which images belong to none of your classes.

    [bold]zsntta detect photos --model tiny --classes cat,dog[/bold]

    [bold]zsntta detect photos --classes cat,dog --review review.html[/bold]

    [bold]zsntta detect photos --classes cat,dog --learn corrections.jsonl[/bold]
    """
    images.check()
    result.check()
    from zsntta_cli.cli.detection.detecting import Outputs, Screen, request_of, run_once
    from zsntta_cli.datasets.decoding import limited_to
    from zsntta_cli.detection.detecting.corrections import Corrected, read_corrections
    from zsntta_cli.detection.encoding import Encoding
    from zsntta_cli.progress import ConsoleReporter
    from zsntta_cli.report.review.review import ReviewFile
    from zsntta_cli.report.verdict_files import FORMS, rows_file
    from zsntta_cli.report.verdict_folders import Copies

    output, review, folder = result.output, result.review, result.copy_to
    form_of(output, FORMS)
    form_of(review, PAGES, option="--review")
    request = request_of(images, decision)
    reporter = ConsoleReporter()
    sinks = [rows_file(output)] if output else []
    sinks += [Copies(folder, reporter)] if folder else []
    everything = [ReviewFile(review)] if review else []
    screen = Screen(result.print0, bool(output), is_alone=not (sinks or everything))
    corrected = Corrected(read_corrections(decision.learn)) if decision.learn else None
    outputs = Outputs(sinks, everything, result.only, screen)
    workers = ExtractSettings().workers
    encoding = Encoding(encoder.choice(), features_dir, device, workers, reporter)
    with encoding.store, limited_to(images.max_megapixels):
        run_once(request, encoding, outputs, corrected)
    if result.fail_on_noise and outputs.tally.counts["noise"]:
        raise typer.Exit(FOUND)
