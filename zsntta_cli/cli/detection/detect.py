"""`zsntta detect`."""

from pathlib import Path
from typing import Annotated

import typer

from zsntta_cli.cli.command import misused, say
from zsntta_cli.cli.detection.options import (
    FOUND,
    DecisionOptions,
    ImageOptions,
    ResultOptions,
)
from zsntta_cli.cli.options import EncoderOptions, FeaturesDir, with_groups
from zsntta_cli.cli.output import PAGES, form_of
from zsntta_cli.report.review import EMBEDDED
from zsntta_cli.settings import FEATURES, ExtractSettings


@with_groups
def detect(
    *,
    images: ImageOptions,
    encoder: EncoderOptions,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 …")] = "auto",
    workers: Annotated[
        int, typer.Option(min=1, help="Threads that read images.")
    ] = ExtractSettings().workers,
    features_dir: FeaturesDir = FEATURES,
    decision: DecisionOptions,
    result: ResultOptions,
) -> None:
    """Tell which images belong to none of your classes.

    Each image gets a verdict.
    """
    if result.judge:
        _check_alone(images, decision, result)
        _judge(result.judge)
        return
    images.check()
    result.check()
    from zsntta_cli.cli.detection.detecting import Outputs, Screen, run_once
    from zsntta_cli.cli.detection.folders import say_plan
    from zsntta_cli.cli.detection.requests import request_of
    from zsntta_cli.datasets.decoding import limited_to
    from zsntta_cli.detection.encoding import Encoding
    from zsntta_cli.progress import ConsoleReporter
    from zsntta_cli.report.review.corrections import Corrected, read_corrections
    from zsntta_cli.report.review.review import ReviewFile
    from zsntta_cli.report.verdict_files import FORMS, rows_file
    from zsntta_cli.report.verdict_folders import Sorter

    out, review = result.out, result.review
    form_of(out, FORMS, option="--out")
    form_of(review, PAGES, option="--review")
    request = request_of(images, decision, result)
    reporter = ConsoleReporter()
    folder, is_dry = result.copy_to, result.dry_run
    sorter = Sorter(folder, reporter, result.keep_folders, is_dry) if folder else None
    file = rows_file(out) if out and not is_dry else None
    wanted = [file, sorter]
    most = EMBEDDED if result.embed is None else result.embed
    everything = [ReviewFile(review, most, workers)] if review and not is_dry else []
    has_file = bool(out) or is_dry
    screen = Screen(result.print0 and not is_dry, has_file, is_alone=not (out or folder or review))
    lessons = read_corrections(decision.learn)[0] if decision.learn else []
    corrected = Corrected(lessons) if lessons else None
    sinks = [sink for sink in wanted if sink]
    outputs = Outputs(sinks, everything, result.only, screen, corrected)
    encoding = Encoding(encoder.choice(), features_dir, device, workers, reporter)
    with encoding.store, limited_to(images.max_megapixels):
        run_once(request, encoding, outputs, lessons)
    if sorter and is_dry:
        say_plan(sorter, [str(path) for path in (out, review) if path])
    if result.fail_on_noise and outputs.tally.counts["noise"]:
        raise typer.Exit(FOUND)


def _check_alone(images: ImageOptions, decision: DecisionOptions, result: ResultOptions) -> None:
    """Refuse what --judge has no use for."""
    beside = (
        images.sources, images.set_name, images.classes_file, images.class_photos, decision.flag,
        decision.clean, decision.learn, result.out, result.only, result.print0, result.copy_to,
        result.keep_folders, result.review, result.dry_run,
    )  # fmt: skip
    if any(beside) or images.classes is not None or decision.others is not None:
        raise misused("--judge reads corrections only: leave images and classes out.")


def _judge(path: Path) -> None:
    """Tell what a file of corrections says of the verdicts."""
    from zsntta_cli.report.review.corrections import read_corrections
    from zsntta_cli.report.review.judging import judgement, notes, table

    corrections, replaced = read_corrections(path)
    judged = judgement(corrections)
    for line in table(judged).splitlines():
        say(line)
    for line in notes(judged, replaced, sum(one.is_repeated for one in corrections)):
        say(line, err=True)
