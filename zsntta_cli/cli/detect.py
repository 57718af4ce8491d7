"""`zsntta detect`: its options, where its verdicts go, and how it ends."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from zsntta_cli.cli.command import drop_unwritten, say
from zsntta_cli.cli.options import (
    FEATURES_DIR,
    EncoderOptions,
    Names,
    argument,
    option,
    single_settings,
)
from zsntta_cli.errors import DatasetError, SettingsError, counted, printable, short
from zsntta_cli.settings import MOST_MEGAPIXELS, ExtractSettings

if TYPE_CHECKING:
    from zsntta_cli.detection.run import Request
    from zsntta_cli.detection.sources import Photo
    from zsntta_cli.detection.verdicts import Row

FOUND = 3  # exit code of --fail-on-noise
_images = partial(option, panel="Images and their classes")
_decision, _result = partial(option, panel="Decision"), partial(option, panel="Result")


@dataclass(frozen=True)
class ImageOptions:
    """Options that say which images are judged, and what their classes are."""

    cached: str | None = _images(None, "Cached set to judge instead of images.", metavar="SET")
    all_folders: bool = _images(
        False, "Also read hidden folders, trash and thumbnails.", "--all-folders"
    )
    max_megapixels: float | None = _images(
        None, f"Largest image to read. Larger images get an error. [{MOST_MEGAPIXELS}]"
    )
    classes: str | None = _images(
        None, "Names of your classes, such as cat,dog. Give this or one of the next two options."
    )
    classes_file: Path | None = _images(None, "File with the names of your classes, one per line.")
    class_photos: Path | None = _images(
        None, "Folder of example photos instead of names: DIR/<class>/ with 2 to 8 photos each."
    )
    prompt: str | None = _images(
        None, "Template with one {}, or 'code' or 'paper'. [code, or the cached set's]"
    )


@dataclass(frozen=True)
class DecisionOptions:
    """Options that say how images are judged."""

    method: str = _decision("cull", "Method that decides: zs-clip, adand or cull.")
    assignments: Names = _decision(
        None, "Setting of the method, such as cull-low=2.", "--set", metavar="NAME=VALUE"
    )
    flag: str | None = _decision(
        None, "Share or number of images to call noise: 5% or 50. [the method decides]"
    )
    learn: Path | None = _decision(
        None, "File of corrections from the review page: these images get your verdicts, and the "
        "method learns from them for the others.",
    )  # fmt: skip

    def settings(self) -> dict[str, Any]:
        """The settings of the method by --set, with one value each.

        Raises:
            SettingsError: a text is not NAME=VALUE, or names no setting of the method.
        """
        if not self.assignments:
            return {}
        if plain := next((text for text in self.assignments if "=" not in text), ""):
            raise SettingsError(
                f"set is '{plain}', must be NAME=VALUE. For a cached set, type --cached {plain}."
            )
        from zsntta_cli.detection.inputs import check_method

        check_method(self.method)
        of_all, of_one = single_settings(self.assignments)
        if foreign := of_one.keys() - {self.method}:
            raise SettingsError(f"--set names {foreign.pop()}, but the method is {self.method}.")
        return {**of_all, **of_one.get(self.method, {})}


@dataclass(frozen=True)
class ResultOptions:
    """Options that say where verdicts go."""

    output: Path | None = _result(None, "File to write the verdicts to: .csv, .jsonl or .parquet.")
    only: Literal["noise", "unsure", "clean"] | None = _result(
        None, "Keep only verdicts with this answer."
    )
    print0: bool = _result(
        False, "Print only paths, each ending in NUL, for xargs -0.", "-0", "--print0"
    )
    copy_to: Path | None = _result(
        None, "Copy images to DIR/<class>/, DIR/_noise/ and DIR/_unsure/ in a new folder DIR."
    )
    review: Path | None = _result(None, "HTML page to write, for viewing and correcting verdicts.")
    fail_on_noise: bool = _result(
        False, f"Exit with code {FOUND} if there is noise.", "--fail-on-noise"
    )

    def check(self) -> None:
        """Refuse what could not be written in the end, before an image is judged.

        Raises:
            SettingsError: a file has another ending, or is in the folder of copies.
            StoreError: a folder is in the way, or pyarrow is missing.
        """
        if self.output or self.review:
            from zsntta_cli.cli.output import PAGES, form_of
            from zsntta_cli.report.verdicts import FORMS, check_form

            form_of(self.output, FORMS)
            form_of(self.review, PAGES, option="--review")
            check_form(self.output)
        if self.copy_to:
            from zsntta_cli.report.verdict_folders import check_is_new

            check_is_new(self.copy_to)
            folder = os.path.abspath(self.copy_to)
            for name, file in (("--output", self.output), ("--review", self.review)):
                if file and Path(os.path.abspath(file)).is_relative_to(folder):
                    raise SettingsError(
                        f"{name} is inside {self.copy_to}, which --copy-to creates: choose a path "
                        f"outside it."
                    )

    def text(self, rows: "Sequence[Row]") -> bytes:
        """Rows as they are printed: as paths, as lines on a terminal, or as JSON Lines elsewhere.

        If they go to a file, no JSON Lines are printed.
        """
        from zsntta_cli.report.verdicts import json_lines, line

        if self.print0:
            return b"".join(os.fsencode(r["source"]) + b"\0" for r in rows if r["error"] is None)
        if sys.stdout.isatty():
            lines = (printable(line(row)) for row in rows if row["answer"] != "clean")
            return "".join(f"{text}\n" for text in lines).encode()
        return b"" if self.output else json_lines(rows)


def detect(
    *,
    sources: Names = argument(
        None, "Files, folders, globs, archives, shards or lists (.txt, .csv); - reads paths from "
        "standard input.", metavar="IMAGES", show_default=False,
    ),
    images: ImageOptions,
    encoder: EncoderOptions,
    device: str = option("auto", "Device: auto, cpu, cuda, cuda:1 …"),
    features_dir: Path = FEATURES_DIR,
    decision: DecisionOptions,
    result: ResultOptions,
) -> None:  # fmt: skip
    """Find images that belong to none of your classes.

    [bold]zsntta detect photos --model tiny --classes cat,dog[/bold]

    [bold]zsntta detect photos --classes cat,dog --review review.html[/bold]

    [bold]zsntta detect photos --classes cat,dog --learn corrections.jsonl[/bold]
    """
    request = _request(tuple(sources or ()), images, decision)
    from zsntta_cli.datasets.decoding import limited_to
    from zsntta_cli.detection.corrections import Corrected, read_corrections
    from zsntta_cli.detection.encoding import Encoding
    from zsntta_cli.detection.run import detect_run
    from zsntta_cli.progress import ConsoleReporter
    from zsntta_cli.report.verdicts import SHOWN, Facts, draw, summary

    result.check()
    corrected = Corrected(read_corrections(decision.learn)) if decision.learn else None
    reporter, workers = ConsoleReporter(), ExtractSettings().workers
    encoding = Encoding(encoder.choice(), features_dir, device, workers, reporter)
    with encoding.store, limited_to(images.max_megapixels):
        run = detect_run(request, encoding, corrected)
        pairs: list[tuple[Photo, Row]] = []
        # On a terminal, a table at the end, or lines as images are decided on arrival.
        has_table = not result.print0 and not request.on_arrival and sys.stdout.isatty()
        is_whole, is_read = True, True  # of all images; somebody reads standard output
        try:
            for photos, decided in run.batches():
                pairs += zip(photos, decided, strict=True)
                if has_table or not is_read:
                    continue
                printed = [row for row in decided if result.only in (None, row["answer"])]
                try:
                    typer.echo(result.text(printed), nl=False)
                except BrokenPipeError:  # whoever closes it early has seen enough
                    drop_unwritten()
                    is_read = False
                    if not (result.output or result.copy_to or result.review):
                        raise typer.Exit(0) from None
        except KeyboardInterrupt:  # what was decided on arrival stays decided
            if not request.on_arrival:
                raise
            is_whole = False
        facts, rows = Facts.of(run), [row for _, row in pairs]
        wanted = [pair for pair in pairs if result.only in (None, pair[1]["answer"])]
        if result.output:
            from zsntta_cli.report.verdicts import write_rows

            write_rows(result.output, [row for _, row in wanted])
        if result.copy_to:
            from zsntta_cli.report.verdict_folders import copy_photos

            copy_photos(result.copy_to, wanted, run.detector.names, reporter)
        if result.review:
            from zsntta_cli.report.review.review import write_review

            write_review(result.review, pairs, run.detector.names, facts)
    table = draw(row for _, row in wanted) if has_table else ""
    typer.echo(table, nl=False)
    notes = corrected.notes() if corrected else ()
    for text in (*summary(rows, facts, SHOWN if table else 0), *notes):
        say(text, err=True)
    if not is_whole:
        raise KeyboardInterrupt
    if all(row["error"] is not None for row in rows):
        what = counted(len(rows), "image")
        why = f"{what} could not be read" if rows else "there were no images"
        raise DatasetError(f"nothing was judged: {why}.")
    if result.fail_on_noise and any(row["noise"] for row in rows):
        raise typer.Exit(FOUND)


def _request(
    sources: tuple[str, ...], images: ImageOptions, decision: DecisionOptions
) -> "Request":
    """What is to be judged, how, and as which classes.

    Raises:
        SettingsError: options exclude each other, or one that is needed is missing.
    """
    classes, file, photos = images.classes, images.classes_file, images.class_photos
    named = {"--classes": classes, "--classes-file": file, "--class-photos": photos}
    typed = [name for name, value in named.items() if value is not None]
    settings = decision.settings()
    if not (typed or images.cached):
        raise SettingsError(
            "name your classes: --classes cat,dog, --classes-file FILE or --class-photos DIR."
        )
    if len(typed) > 1:
        raise SettingsError(f"{' and '.join(typed)} are both given: choose one.")
    if photos and images.prompt is not None:
        raise SettingsError(
            "--prompt applies to class names, and --class-photos has none: omit one of the two."
        )
    if images.max_megapixels is not None and not images.max_megapixels > 0:
        raise SettingsError(f"--max-megapixels is {images.max_megapixels:g}, must be above 0.")
    from zsntta_cli.detection.names import read_classes, typed_classes
    from zsntta_cli.detection.run import Request

    names = read_classes(file) if file else () if classes is None else typed_classes(classes)
    if classes and len(names) == 1 and " " in names[0]:
        say(f"note: '{short(names[0])}' is one class: commas separate names.", err=True)
    return Request(
        sources=sources, set_name=images.cached, all_folders=images.all_folders, classes=names,
        class_photos=photos, prompt=images.prompt, method=decision.method, settings=settings,
        flag=decision.flag,
    )  # fmt: skip
