"""`zsntta detect`: its options, where its rows go, what ends it."""

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from zsntta_cli.cli.command import drop_unwritten, say
from zsntta_cli.cli.options import EncoderOptions, FeaturesDir, argument, method_settings, option
from zsntta_cli.cli.values import cached_sets
from zsntta_cli.errors import DatasetError, SettingsError, counted, short
from zsntta_cli.settings import FEATURES, MOST_MEGAPIXELS, ExtractSettings

if TYPE_CHECKING:
    from zsntta_cli.detection.run import DetectRun
    from zsntta_cli.detection.sources import Photo
    from zsntta_cli.detection.verdicts import Row

FOUND = 3  # exit code of --fail-on-noise
_AT_ONCE = 500  # rows between two looks whether anybody still reads
_PANELS = ("Images and their classes", "Decision", "Result")
_images, _decision, _result = (partial(option, panel=panel) for panel in _PANELS)


def detect(
    *,
    sources: Annotated[
        list[str] | None,
        argument(
            metavar="IMAGES",
            show_default=False,
            help="Files, folders, globs, archives, shards, lists (.txt, .csv); - for paths on "
            "standard input.",
        ),
    ] = None,
    sets: Annotated[
        list[str] | None,
        _images(
            "--set",
            metavar="NAME",
            help="Cached set to judge instead of images; or a setting of the method, cull-low=2.",
            autocompletion=cached_sets,
        ),
    ] = None,
    all_folders: Annotated[
        bool,
        _images("--all-folders", help="Read hidden folders, trash and thumbnails, too."),
    ] = False,
    max_megapixels: Annotated[
        float | None,
        _images(help=f"Larger images are rows with an error. [{MOST_MEGAPIXELS}]"),
    ] = None,
    classes: Annotated[
        str | None,
        _images(
            help="Names of your classes: cat,dog. One of this and the next two options is required."
        ),
    ] = None,
    classes_file: Annotated[
        Path | None, _images(help="File with the names of your classes, one per line.")
    ] = None,
    class_photos: Annotated[
        Path | None,
        _images(
            help="Folder of example photos instead of names: DIR/<class>/, with 2 to 8 photos in "
            "each."
        ),
    ] = None,
    prompt: Annotated[
        str | None, _images(help="Template with one {}, or 'code', 'paper'. [the set's, code]")
    ] = None,
    encoder: EncoderOptions,
    device: Annotated[str, option(help="auto, cpu, cuda, cuda:1 …")] = "auto",
    features_dir: FeaturesDir = FEATURES,
    method: Annotated[str, _decision(help="Method that decides: zs-clip, adand or cull.")] = "cull",
    flag: Annotated[
        str | None,
        _decision(help="How many are called noise: 5%, or 50. [the method decides]"),
    ] = None,
    learn: Annotated[
        Path | None,
        _decision(
            help="File of the page's corrections: these images get your verdict, and others are "
            "decided by what they teach."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        _result(help="File for the rows: FILE.csv, .jsonl or .parquet."),
    ] = None,
    only: Annotated[
        Literal["noise", "unsure", "clean"] | None,
        _result(help="Print only rows with this answer."),
    ] = None,
    print0: Annotated[
        bool, _result("-0", "--print0", help="Print only paths, each with a NUL, for xargs.")
    ] = False,
    copy_to: Annotated[
        Path | None,
        _result(help="Copy images to DIR/<class>/, DIR/_noise/ and DIR/_unsure/; DIR is new."),
    ] = None,
    review: Annotated[
        Path | None, _result(help="HTML page to see and correct verdicts on.")
    ] = None,
    fail_on_noise: Annotated[
        bool, _result("--fail-on-noise", help=f"Exit code {FOUND} where there is noise.")
    ] = False,
) -> None:
    """Tell which images belong to none of your classes.

    [bold]zsntta detect photos --model tiny --classes cat,dog[/bold]

    [bold]zsntta detect photos --classes cat,dog --review review.html[/bold]

    [bold]zsntta detect photos --classes cat,dog --learn corrections.jsonl[/bold]
    """
    given = {"--classes": classes, "--classes-file": classes_file, "--class-photos": class_photos}
    texts = [text for text in sets or () if "=" in text]
    named = [text for text in sets or () if "=" not in text]
    if len(named) > 1:
        raise SettingsError(f"--set names {len(named)} sets, must be one.")
    set_name = named[0] if named else None
    _check_classes([name for name, value in given.items() if value is not None], set_name, prompt)
    if max_megapixels is not None and not max_megapixels > 0:
        raise SettingsError(f"--max-megapixels is {max_megapixels:g}, must be above 0.")
    from zsntta_cli.datasets.decoding import limited_to
    from zsntta_cli.detection.corrections import Corrected, read_corrections
    from zsntta_cli.detection.encoding import Encoding
    from zsntta_cli.detection.run import Request, detect_run
    from zsntta_cli.progress import ConsoleReporter
    from zsntta_cli.report.verdicts import SHOWN, Facts, summary

    _check_outputs(output, review, copy_to)
    request = Request(
        sources=tuple(sources or ()), set_name=set_name, all_folders=all_folders,
        classes=_classes(classes, classes_file), class_photos=class_photos, prompt=prompt,
        method=method, settings=_settings(method, texts) if texts else {}, flag=flag,
    )  # fmt: skip
    corrected = Corrected(read_corrections(learn)) if learn else None
    reporter, workers = ConsoleReporter(), ExtractSettings().workers
    encoding = Encoding(encoder.choice(), features_dir, device, workers, reporter)
    with encoding.store, limited_to(max_megapixels):
        run = detect_run(request, encoding, corrected)
        screen = Screen(print0, has_file=bool(output), is_alone=not (output or copy_to or review),
                        is_live=request.on_arrival, only=only)  # fmt: skip
        pairs, is_whole = _decided(run, screen)
        facts, rows = Facts.of(run), [row for _, row in pairs]
        wanted = [pair for pair in pairs if only in (None, pair[1]["answer"])]
        if output:
            from zsntta_cli.report.verdicts import write_rows

            write_rows(output, [row for _, row in wanted])
        if copy_to:
            from zsntta_cli.report.verdict_folders import copy_photos

            copy_photos(copy_to, wanted, run.detector.names, reporter)
        if review:
            from zsntta_cli.report.review.review import write_review

            write_review(review, pairs, run.detector.names, facts)
    shown = SHOWN if screen.show_table([row for _, row in wanted]) else 0
    for line in (*summary(rows, facts, shown), *(corrected.notes() if corrected else ())):
        say(line, err=True)
    if not is_whole:
        raise KeyboardInterrupt
    if all(row["error"] is not None for row in rows):
        images = counted(len(rows), "image")
        why = f"not one of {images} could be read" if rows else "there was no image"
        raise DatasetError(f"nothing was judged: {why}.")
    if fail_on_noise and any(row["noise"] for row in rows):
        raise typer.Exit(FOUND)


def _settings(method: str, texts: Sequence[str]) -> dict[str, Any]:
    """Settings of the method by --set, of which a detector has one value each."""
    from zsntta_cli.detection.inputs import check_method

    check_method(method)
    of_all, own = method_settings(texts)
    others = [name for name in own if name != method]
    if others:
        raise SettingsError(f"--set is of {others[0]}, and {method} decides here.")
    axes = {**of_all, **own.get(method, {})}
    for name, several in axes.items():
        if len(several) > 1:
            raise SettingsError(f"--set {name.replace('_', '-')} has several values, must be one.")
    return {name: value for name, (value,) in axes.items()}


def _check_classes(given: Sequence[str], set_name: str | None, prompt: str | None) -> None:
    """Refuse classes that are named twice, or not at all."""
    if not given and not set_name:
        raise SettingsError(
            "name your classes: --classes cat,dog, --classes-file FILE or --class-photos DIR."
        )
    if len(given) > 1:
        raise SettingsError(f"{' and '.join(given)} are both given: one of them.")
    if given == ["--class-photos"] and prompt is not None:
        raise SettingsError(
            "--prompt is of class names: with --class-photos there are none to embed."
        )


def _check_outputs(output: Path | None, review: Path | None, copy_to: Path | None) -> None:
    """Refuse what could not be written in the end, before an image is judged."""
    if output or review:
        from zsntta_cli.cli.output import PAGES, form_of
        from zsntta_cli.report.verdicts import FORMS, check_form

        form_of(output, FORMS)
        form_of(review, PAGES, option="--review")
        if output:
            check_form(output)
    if copy_to:
        from zsntta_cli.report.verdict_folders import check_is_new

        check_is_new(copy_to)
        for name, file in (("--output", output), ("--review", review)):
            if file and Path(os.path.abspath(file)).is_relative_to(os.path.abspath(copy_to)):
                raise SettingsError(
                    f"{name} is within {copy_to}, which --copy-to makes as a whole: name another "
                    f"place."
                )


def _classes(typed: str | None, file: Path | None) -> tuple[str, ...]:
    """The class names that are given; none where the set or photos have them."""
    from zsntta_cli.detection.names import read_classes, typed_classes

    if file:
        return read_classes(file)
    names = () if typed is None else typed_classes(typed)
    if len(names) == 1 and " " in names[0]:
        say(f"note: '{short(names[0])}' is one class: commas separate names.", err=True)
    return names


def _decided(run: "DetectRun", screen: "Screen") -> tuple[list[tuple["Photo", "Row"]], bool]:
    """All images with their rows, as they are decided; whether they came to an end.

    Ctrl-C ends what is decided on arrival: what was decided stays decided.
    """
    pairs: list[tuple[Photo, Row]] = []
    try:
        for photos, rows in run.batches():
            pairs += zip(photos, rows, strict=True)
            screen.show(rows)
    except KeyboardInterrupt:
        if not run.request.on_arrival:
            raise
        return pairs, False
    return pairs, True


class Screen:
    """Standard output: on a terminal a table at the end, or lines as images are decided on arrival.

    Else it has rows as JSON Lines; `print0`: paths. With a file of rows it has none.
    """

    def __init__(
        self, print0: bool, *, has_file: bool, is_alone: bool, is_live: bool, only: str | None
    ) -> None:
        self._print0, self._has_file, self._is_alone = print0, has_file, is_alone
        self._is_live, self._only = is_live, only
        self._has_table = not print0 and not is_live and sys.stdout.isatty()
        self._is_read = True  # whether somebody reads standard output

    def show(self, rows: "Sequence[Row]") -> None:
        """Show rows, if no table is to have them."""
        wanted = [row for row in rows if self._only in (None, row["answer"])]
        for start in range(0, 0 if self._has_table else len(wanted), _AT_ONCE):
            self._tell(partial(self._write, wanted[start : start + _AT_ONCE]))

    def show_table(self, rows: "Sequence[Row]") -> bool:
        """Show the table of all rows, if there is one."""
        from zsntta_cli.report.verdicts import draw

        table = draw(rows) if self._has_table else ""
        if table:
            self._tell(lambda: typer.echo(table, nl=False))
        return bool(table)

    def _tell(self, write: Callable[[], None]) -> None:
        """Write to standard output; whoever closes it early has seen enough."""
        if not self._is_read:
            return
        try:
            write()
        except BrokenPipeError:
            drop_unwritten()
            self._is_read = False
            if self._is_alone:
                raise typer.Exit(0) from None

    def _write(self, rows: "Sequence[Row]") -> None:
        from zsntta_cli.report.verdicts import json_lines, line

        if self._print0:
            sources = (os.fsencode(row["source"]) for row in rows if row["error"] is None)
            typer.echo(b"".join(source + b"\0" for source in sources), nl=False)
        elif not sys.stdout.isatty():
            typer.echo(b"" if self._has_file else json_lines(rows), nl=False)
        else:
            for row in rows:
                if row["answer"] != "clean":
                    say(line(row))
