"""`zsntta detect`."""

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from zsntta_cli.cli import completion
from zsntta_cli.cli.command import misused, say
from zsntta_cli.cli.options import EncoderOptions, FeaturesDir, under, with_groups
from zsntta_cli.cli.output import PAGES, form_of
from zsntta_cli.report.review import EMBEDDED
from zsntta_cli.settings import FEATURES, MCM, ExtractSettings

FOUND = 3  # exit code of --fail-on-noise


_decision, _result, _watch = (partial(under, panel) for panel in ("Decision", "Result", "Watch"))


@with_groups
def detect(
    *,
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
    class_photos: Annotated[
        Path | None,
        typer.Option(help="Example photos in their place: DIR/<class>/, 2 to 8 photos in each."),
    ] = None,
    prompt: Annotated[
        str | None, typer.Option(help="Template with one {}, or 'code', 'paper'. [the set's, code]")
    ] = None,
    encoder: EncoderOptions,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 …")] = "auto",
    workers: Annotated[
        int, typer.Option(min=1, help="Threads that read images.")
    ] = ExtractSettings().workers,
    features_dir: FeaturesDir = FEATURES,
    method: Annotated[str, _decision("zs-clip, adand or ridge.")] = "ridge",
    score: Annotated[str, _decision("Noise score of the frozen model: mcm, match.")] = MCM,
    flag: Annotated[
        str | None,
        _decision("How many are noise: 5%, 50, or fpr=1%. [the method decides]"),
    ] = None,
    clean: Annotated[Path | None, _decision("Images known to be clean, for --flag fpr=1%.")] = None,
    decide: Annotated[
        Literal["hindsight", "arrival"] | None,
        _decision("[hindsight; arrival for -, videos and --watch]"),
    ] = None,
    others: Annotated[
        str | None,
        _decision("Words for what else there may be: wordnet, something, or FILE, a word a line."),
    ] = None,
    seed: Annotated[int, _decision("Of the orders a folder is shown in.")] = 0,
    ask: Annotated[
        int | None,
        _decision("Ask about so many images whether they belong, and decide by it.", min=1),
    ] = None,
    answers: Annotated[
        Path | None, _decision("Answers to --ask: .jsonl or .csv. [the terminal]")
    ] = None,
    fps: Annotated[float, _decision("Frames of a second of video.")] = 1.0,
    out: Annotated[Path | None, _result("Rows to FILE.csv, .jsonl or .parquet, whole.")] = None,
    only: Annotated[
        Literal["noise", "unsure", "clean"] | None, _result("Rows of this answer alone.")
    ] = None,
    print0: Annotated[
        bool, _result("Paths alone, a NUL behind each, for xargs -0.", "-0", "--print0")
    ] = False,
    copy_to: Annotated[
        Path | None, _result("Copy images to DIR/<class>/, DIR/_noise/ and DIR/_unsure/.")
    ] = None,
    link_to: Annotated[Path | None, _result("The same with links.")] = None,
    review: Annotated[Path | None, _result("A page to look at verdicts and correct them.")] = None,
    embed: Annotated[int | None, _result(f"Pictures in it, at most. [{EMBEDDED}]", min=0)] = None,
    corrections: Annotated[
        Path | None, _result("The page's corrections: these images are as you said.")
    ] = None,
    learn: Annotated[
        Path | None, _decision("Corrections to learn from, for all other images.")
    ] = None,
    judge: Annotated[Path | None, _result("Accuracies by the page's corrections; alone.")] = None,
    fail_on_noise: Annotated[
        bool, _result(f"Exit code {FOUND} where there is noise.", "--fail-on-noise")
    ] = False,
    watch: Annotated[
        bool, _watch("Go on as the folders fill up; Ctrl-C ends it.", "--watch")
    ] = False,
    state: Annotated[Path | None, _watch("Where a watch goes on, however it was stopped.")] = None,
    interval: Annotated[float, _watch("Seconds between two looks.")] = 1.0,
    looks: Annotated[int | None, _watch("End after so many looks. [none]")] = None,
) -> None:
    """Tell which images belong to none of your classes: a verdict an image."""
    if judge:
        beside = (
            sources, set_name, classes_file, class_photos, flag, clean, out, only, print0,
            copy_to, link_to, corrections, learn,
        )  # fmt: skip
        if any(beside) or classes is not None or others is not None or review or watch:
            raise misused("--judge reads corrections alone: leave images and classes out.")
        _judge(judge)
        return
    if embed is not None and not review:
        raise misused("--embed is of a page: add --review FILE.html.")
    if review and watch:
        raise misused("--review is of all images, and a watch goes on: leave one of them out.")
    named = {
        "--classes": classes is not None,
        "--classes-file": classes_file,
        "--class-photos": class_photos,
    }
    given = [option for option, value in named.items() if value]
    if not given and not set_name:
        raise misused(
            "name your classes: --classes cat,dog, --classes-file FILE or --class-photos DIR."
        )
    if len(given) > 1:
        raise misused(f"{' and '.join(given)} are both given: one of them.")
    if class_photos and prompt is not None:
        raise misused("--prompt is of class names: with --class-photos there are none to embed.")
    if state and not watch:
        raise misused("--state is of a watch: add --watch.")
    if answers and ask is None:
        raise misused("--answers is of questions: add --ask 10.")
    if ask is not None and flag:
        raise misused("--flag says how many are noise, and so do answers to --ask: one of them.")
    if ask is not None and watch:
        raise misused("--ask is of a whole folder, and a watch goes on: leave one of them out.")
    if copy_to and link_to:
        raise misused("--copy-to and --link-to are both given: one of them.")
    from zsntta_cli.cli.detection.asking import interview_of, tell
    from zsntta_cli.cli.detection.detecting import Outputs, Screen, run_once, run_watch
    from zsntta_cli.detection.encoding import Encoding
    from zsntta_cli.detection.runs import request as asked
    from zsntta_cli.detection.runs.flags import Flag
    from zsntta_cli.progress import ConsoleReporter
    from zsntta_cli.report.review.corrections import Corrected, read_corrections
    from zsntta_cli.report.review.review import ReviewFile
    from zsntta_cli.report.verdict_files import FORMS, GROWING, GrowingFile, rows_file
    from zsntta_cli.report.verdict_folders import Sorter

    form_of(out, GROWING if watch else FORMS, option="out")
    form_of(review, PAGES, option="review")
    names = asked.read_classes(classes_file) if classes_file else asked.split_classes(classes or "")
    request = asked.Request(
        images=asked.Images(sources=tuple(sources or ()), set_name=set_name, fps=fps),
        classes=names if classes is not None or classes_file else (),
        class_photos=class_photos,
        prompt=prompt,
        rule=asked.DecisionRule(
            method=method,
            score=score,
            flag=Flag.parse(flag),
            clean=clean,
            decide=decide,
            seed=seed,
            others=others,
        ),
        watch=asked.Watch(interval=interval, looks=looks) if watch else None,
    )
    if ask is not None and request.on_arrival:
        raise misused("--ask is of a whole folder: leave it out, or add --decide hindsight.")
    interview = None if ask is None else interview_of(ask, answers)
    reporter = ConsoleReporter()
    growing = GrowingFile(out) if out and watch else None
    folder = copy_to or link_to
    wanted = [
        growing,
        rows_file(out) if out and not watch else None,
        Sorter(folder, links=bool(link_to), reporter=reporter) if folder else None,
    ]
    most = EMBEDDED if embed is None else embed
    everything = [ReviewFile(review, most, workers)] if review else []
    screen = Screen(print0, has_file=bool(out), is_alone=not (out or folder or review))
    corrected = Corrected(read_corrections(corrections)[0]) if corrections else None
    lessons = read_corrections(learn)[0] if learn else []
    outputs = Outputs([sink for sink in wanted if sink], everything, only, screen, corrected)
    encoding = Encoding(encoder.choice(), features_dir, device, workers, reporter)
    with encoding.store:
        if watch:
            run_watch(request, encoding, outputs, growing, state, lessons)
        else:
            run_once(request, encoding, outputs, interview, lessons)
    if interview:
        tell(interview, outputs.tally.counts["noise"], answers)
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
    for line in notes(judged, replaced, sum(one.is_repeated for one in corrections)):
        say(line, err=True)
