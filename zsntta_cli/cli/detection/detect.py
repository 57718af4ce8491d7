"""`zsntta detect`."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from zsntta_cli.cli import completion
from zsntta_cli.cli.command import misused, say
from zsntta_cli.cli.options import (
    EncoderName,
    FeaturesDir,
    Model,
    Precision,
    Pretrained,
    chosen_encoder,
)
from zsntta_cli.cli.output import PAGES, form_of
from zsntta_cli.report.review import EMBEDDED
from zsntta_cli.settings import FEATURES, MCM, ExtractSettings

FOUND = 3  # exit code of --fail-on-noise


def _option(text: str, panel: str, *names: str) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=panel)


def detect(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="IMAGES",
            show_default=False,
            help="Files, folders, globs, archives, shards, lists (.txt, .csv), videos; - for paths "
            "on standard input.",
        ),
    ] = None,
    set_name: Annotated[
        str | None,
        typer.Option(
            "--set",
            help="Features that are cached, in place of images.",
            autocompletion=completion.cached,
        ),
    ] = None,
    classes: Annotated[str | None, typer.Option(help="Names of your classes: cat,dog.")] = None,
    classes_file: Annotated[Path | None, typer.Option(help="The same, a name a line.")] = None,
    prompt: Annotated[
        str | None, typer.Option(help="Template with one {}, or 'code', 'paper'. [the set's, code]")
    ] = None,
    model: Model = None,
    pretrained: Pretrained = None,
    precision: Precision = None,
    encoder: EncoderName = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 …")] = "auto",
    workers: Annotated[
        int, typer.Option(min=1, help="Threads that read images.")
    ] = ExtractSettings().workers,
    features_dir: FeaturesDir = FEATURES,
    method: Annotated[str, _option("zs-clip, adand or ridge.", "Decision")] = "ridge",
    score: Annotated[
        str, _option("Noise score of the frozen model: mcm, match.", "Decision")
    ] = MCM,
    flag: Annotated[
        str | None,
        _option("How many are noise: 5%, 50, or fpr=1%. [the method decides]", "Decision"),
    ] = None,
    clean: Annotated[
        Path | None, _option("Images known to be clean, for --flag fpr=1%.", "Decision")
    ] = None,
    decide: Annotated[
        Literal["hindsight", "arrival"] | None,
        _option("[hindsight; arrival for -, videos and --watch]", "Decision"),
    ] = None,
    seed: Annotated[int, _option("Of the orders a folder is shown in.", "Decision")] = 0,
    fps: Annotated[float, _option("Frames of a second of video.", "Decision")] = 1.0,
    out: Annotated[
        Path | None, _option("Rows to FILE.csv, .jsonl or .parquet, whole.", "Result")
    ] = None,
    only: Annotated[
        Literal["noise", "clean"] | None, _option("Rows of these alone.", "Result")
    ] = None,
    print0: Annotated[
        bool, _option("Paths alone, a NUL behind each, for xargs -0.", "Result", "-0", "--print0")
    ] = False,
    copy_to: Annotated[
        Path | None, _option("Copy images to DIR/<class>/ and DIR/_noise/.", "Result")
    ] = None,
    link_to: Annotated[Path | None, _option("The same with links.", "Result")] = None,
    review: Annotated[
        Path | None, _option("A page to look at verdicts and correct them.", "Result")
    ] = None,
    embed: Annotated[
        int | None,
        typer.Option(
            min=0, help=f"Pictures in it, at most. [{EMBEDDED}]", rich_help_panel="Result"
        ),
    ] = None,
    judge: Annotated[
        Path | None, _option("Accuracies by the page's corrections; alone.", "Result")
    ] = None,
    fail_on_noise: Annotated[
        bool, _option(f"Exit code {FOUND} where there is noise.", "Result", "--fail-on-noise")
    ] = False,
    watch: Annotated[
        bool, _option("Go on as the folders fill up; Ctrl-C ends it.", "Watch", "--watch")
    ] = False,
    state: Annotated[
        Path | None, _option("Where a watch goes on, however it was stopped.", "Watch")
    ] = None,
    interval: Annotated[float, _option("Seconds between two looks.", "Watch")] = 1.0,
    looks: Annotated[int | None, _option("End after so many looks. [none]", "Watch")] = None,
) -> None:
    """Tell which images belong to none of your classes: a verdict an image."""
    if judge:
        others = (sources, set_name, classes_file, flag, clean, out, only, print0, copy_to, link_to)
        if any(others) or classes is not None or review or watch:
            raise misused("--judge reads corrections alone: leave images and classes out.")
        _judge(judge)
        return
    if embed is not None and not review:
        raise misused("--embed is of a page: add --review FILE.html.")
    if review and watch:
        raise misused("--review is of all images, and a watch goes on: leave one of them out.")
    if classes is None and not classes_file and not set_name:
        raise misused("name your classes: --classes cat,dog or --classes-file FILE.")
    if classes is not None and classes_file:
        raise misused("--classes and --classes-file are both given: one of them.")
    if state and not watch:
        raise misused("--state is of a watch: add --watch.")
    if copy_to and link_to:
        raise misused("--copy-to and --link-to are both given: one of them.")
    from zsntta_cli.cli.detection.detecting import Outputs, Screen, run_once, run_watch
    from zsntta_cli.detection.encoding import Encoding
    from zsntta_cli.detection.runs import request as asked
    from zsntta_cli.detection.runs.flags import Flag
    from zsntta_cli.progress import ConsoleReporter
    from zsntta_cli.report.review.review import ReviewFile
    from zsntta_cli.report.verdict_files import FORMS, GROWING, GrowingFile, rows_file
    from zsntta_cli.report.verdict_folders import Sorter

    form_of(out, GROWING if watch else FORMS, option="out")
    form_of(review, PAGES, option="review")
    names = asked.read_classes(classes_file) if classes_file else asked.split_classes(classes or "")
    request = asked.Request(
        images=asked.Images(sources=tuple(sources or ()), set_name=set_name, fps=fps),
        classes=names if classes is not None or classes_file else (),
        prompt=prompt,
        rule=asked.DecisionRule(
            method=method, score=score, flag=Flag.parse(flag), clean=clean, decide=decide, seed=seed
        ),
        watch=asked.Watch(interval=interval, looks=looks) if watch else None,
    )
    reporter = ConsoleReporter()
    growing = GrowingFile(out) if out and watch else None
    wanted = [
        growing,
        rows_file(out) if out and not watch else None,
        Sorter(copy_to, links=False, reporter=reporter) if copy_to else None,
        Sorter(link_to, links=True, reporter=reporter) if link_to else None,
    ]
    most = EMBEDDED if embed is None else embed
    everything = [ReviewFile(review, most, workers)] if review else []
    is_alone = not (out or copy_to or link_to or review)
    screen = Screen(print0, has_file=bool(out), is_alone=is_alone)
    outputs = Outputs([sink for sink in wanted if sink], everything, only, screen)
    choice = chosen_encoder(model, pretrained, precision, encoder)
    encoding = Encoding(choice, features_dir, device, workers, reporter)
    with encoding.store:
        if watch:
            run_watch(request, encoding, outputs, growing, state)
        else:
            run_once(request, encoding, outputs)
    if fail_on_noise and outputs.tally.counts["noise"]:
        raise typer.Exit(FOUND)


def _judge(path: Path) -> None:
    """Tell what a file of corrections says of the verdicts."""
    from zsntta_cli.report.review.corrections import read_corrections
    from zsntta_cli.report.review.judging import judgement, notes, table

    corrections, replaced = read_corrections(path)
    judged = judgement(corrections)
    for line in table(judged).splitlines():
        say(line)
    for line in notes(judged, replaced):
        say(line, err=True)
