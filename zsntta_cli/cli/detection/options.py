"""Options of `zsntta detect` in groups, each with what of it contradicts itself."""

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from zsntta_cli.cli.options import argument, option
from zsntta_cli.cli.values import cached_sets
from zsntta_cli.errors import SettingsError
from zsntta_cli.settings import MOST_MEGAPIXELS

FOUND = 3  # exit code of --fail-on-noise

_PANELS = ("Images and their classes", "Decision", "Result")
_images, _decision, _result = (partial(option, panel=panel) for panel in _PANELS)


@dataclass(frozen=True)
class ImageOptions:
    """Which images, and of which classes they may be."""

    sources: Annotated[
        list[str] | None,
        argument(
            metavar="IMAGES",
            show_default=False,
            help="Files, folders, globs, archives, shards, lists (.txt, .csv); - for paths on "
            "standard input.",
        ),
    ] = None
    set_name: Annotated[
        str | None,
        _images("--set", help="Cached set to judge instead of images.", autocompletion=cached_sets),
    ] = None
    all_folders: Annotated[
        bool,
        _images("--all-folders", help="Read hidden folders, trash and thumbnails, too."),
    ] = False
    max_megapixels: Annotated[
        float | None,
        _images(help=f"Larger images are rows with an error. [{MOST_MEGAPIXELS}]"),
    ] = None
    classes: Annotated[
        str | None,
        _images(
            help="Names of your classes: cat,dog. One of this and the next two options is required."
        ),
    ] = None
    classes_file: Annotated[
        Path | None, _images(help="File with the names of your classes, one per line.")
    ] = None
    class_photos: Annotated[
        Path | None,
        _images(
            help="Folder of example photos instead of names: DIR/<class>/, with 2 to 8 photos in "
            "each."
        ),
    ] = None
    prompt: Annotated[
        str | None, _images(help="Template with one {}, or 'code', 'paper'. [the set's, code]")
    ] = None

    def check(self) -> None:
        """Refuse classes that are named twice, or not at all, and images of no pixel."""
        if self.max_megapixels is not None and not self.max_megapixels > 0:
            raise SettingsError(f"--max-megapixels is {self.max_megapixels:g}, must be above 0.")
        values = {
            "--classes": self.classes is not None,
            "--classes-file": self.classes_file,
            "--class-photos": self.class_photos,
        }
        given = [option for option, value in values.items() if value]
        if not given and not self.set_name:
            raise SettingsError(
                "name your classes: --classes cat,dog, --classes-file FILE or --class-photos DIR."
            )
        if len(given) > 1:
            raise SettingsError(f"{' and '.join(given)} are both given: one of them.")
        if self.class_photos and self.prompt is not None:
            raise SettingsError(
                "--prompt is of class names: with --class-photos there are none to embed."
            )


@dataclass(frozen=True)
class DecisionOptions:
    """How images are decided on."""

    method: Annotated[str, _decision(help="Method that decides: zs-clip, adand or cull.")] = "cull"
    flag: Annotated[
        str | None,
        _decision(help="How many are called noise: 5%, or 50. [the method decides]"),
    ] = None
    learn: Annotated[
        Path | None,
        _decision(
            help="File of the page's corrections: these images get your verdict, and others are "
            "decided by what they teach."
        ),
    ] = None


@dataclass(frozen=True)
class ResultOptions:
    """Where verdicts go, and what a person said of them."""

    output: Annotated[
        Path | None,
        _result(help="File for the rows: FILE.csv, .jsonl or .parquet."),
    ] = None
    only: Annotated[
        Literal["noise", "unsure", "clean"] | None,
        _result(help="Print only rows with this answer."),
    ] = None
    print0: Annotated[
        bool, _result("-0", "--print0", help="Print only paths, each with a NUL, for xargs.")
    ] = False
    copy_to: Annotated[
        Path | None,
        _result(help="Copy images to DIR/<class>/, DIR/_noise/ and DIR/_unsure/; DIR is new."),
    ] = None
    review: Annotated[Path | None, _result(help="HTML page to see and correct verdicts on.")] = None
    fail_on_noise: Annotated[
        bool, _result("--fail-on-noise", help=f"Exit code {FOUND} where there is noise.")
    ] = False

    def check(self) -> None:
        """Refuse what contradicts itself."""
        if not self.copy_to:
            return
        from zsntta_cli.report.verdict_folders import check_is_new

        check_is_new(self.copy_to)
        for name, file in (("--output", self.output), ("--review", self.review)):
            if file and Path(os.path.abspath(file)).is_relative_to(os.path.abspath(self.copy_to)):
                raise SettingsError(
                    f"{name} is within {self.copy_to}, which --copy-to makes as a whole: name "
                    f"another place."
                )
