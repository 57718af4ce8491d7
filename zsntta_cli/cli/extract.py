"""`zsntta extract`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zsntta_cli.cli.line import completion
from zsntta_cli.cli.line.command import misused, say
from zsntta_cli.cli.line.dry import NOTHING_DONE, DryRun
from zsntta_cli.cli.line.hints import simulate_command
from zsntta_cli.cli.line.options import DataRoot, FeaturesDir, ModelOptions, with_groups
from zsntta_cli.cli.parts import PartOptions
from zsntta_cli.errors import DatasetError, first_line
from zsntta_cli.settings import DATA, FEATURES, EncoderChoice, ExtractSettings
from zsntta_cli.settings.prompts import PHOTOS, WORD_SETS, averaged_prompt

if TYPE_CHECKING:
    from zsntta_cli.detection.classes.photos import PhotoClasses
    from zsntta_cli.extraction.plan import ExtractPlan, Failures
    from zsntta_cli.progress import Reporter

_EXTRACT = ExtractSettings()


@dataclass(frozen=True)
class WantedOptions:
    """What is to be extracted."""

    dataset: Annotated[
        list[str] | None,
        typer.Option(
            help="A known set; NAME=PATH of a folder, .tar, .zip or shards; of the hub "
            "clip-benchmark/wds_NAME or NAME=hf:ORG/NAME:SPLIT.",
            autocompletion=completion.known_sets,
        ),
    ] = None
    data_root: DataRoot = DATA
    limit: Annotated[
        int | None,
        typer.Option(help="Largest number of images of a set, or of words of a list. [all]"),
    ] = None
    class_names: Annotated[
        Path | None,
        typer.Option(
            help="Class names of a NAME=PATH set: one per line, or a folder and its name per "
            "line. [the folders']"
        ),
    ] = None
    label: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            help="What has the labels of shards: a field of the JSON, or the ending of files.",
        ),
    ] = None
    prompt: Annotated[
        list[str] | None,
        typer.Option(help="Template with one {}, or 'code', 'paper', 'clip-80' …. [the set's]"),
    ] = None
    template: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEMPLATE", help="One of several templates, whose features are averaged."
        ),
    ] = None
    words: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Word list: {', '.join(WORD_SETS)}; or FILE or NAME=FILE, a word per line.",
            autocompletion=completion.word_sets,
        ),
    ] = None
    noise: Annotated[
        list[str] | None,
        typer.Option(
            help="Type of injected noise to encode as well, or 'none'. [gaussian for ID sets]"
        ),
    ] = None
    noise_count: Annotated[
        int | None,
        typer.Option(help="Images of each type of injected noise. [a quarter of the ID set]"),
    ] = None
    partners: Annotated[
        bool, typer.Option(help="Also extract the ID set's partners, if no OOD set is named.")
    ] = True
    as_shown: Annotated[
        bool,
        typer.Option(
            "--as-shown",
            help="Turn photos as their EXIF says, and put transparent ones on white, as detect "
            "does.",
        ),
    ] = False

    @property
    def given(self) -> list[str]:
        """The options that name something to extract, as far as the line has them."""
        named = ("dataset", "words", "noise", "prompt", "template", "noise_count")
        return [name for name in named if getattr(self, name)]

    def plan(self) -> "ExtractPlan":
        """What is to be extracted, as the library takes it."""
        from zsntta_cli.datasets.names import with_label
        from zsntta_cli.extraction.plan import ExtractPlan

        averaged = [averaged_prompt(self.template)] if self.template else []
        return ExtractPlan(
            with_label(self.dataset or (), self.label), self.data_root, tuple(self.words or ()),
            self.limit, (*(self.prompt or ()), *averaged),
            tuple(self.noise) if self.noise else None, self.noise_count, self.partners,
            self.class_names, as_shown=self.as_shown,
        )  # fmt: skip


@dataclass(frozen=True)
class EncodingOptions:
    """How images are encoded and stored."""

    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 …")] = "auto"
    batch_size: Annotated[
        int,
        typer.Option(help="Images in an encoder pass: the last bits of features depend on it."),
    ] = _EXTRACT.batch_size
    workers: Annotated[int, typer.Option(help="Threads that read images.")] = _EXTRACT.workers
    store: Annotated[
        str,
        typer.Option(
            metavar="float16|float32",
            help="Type of the features in the file; float32 takes twice the space.",
        ),
    ] = _EXTRACT.store
    skip_broken: Annotated[bool, typer.Option(help="Leave unreadable images out.")] = False
    overwrite: Annotated[bool, typer.Option(help="Replace files made from other images.")] = False

    def settings(self) -> ExtractSettings:
        """The settings, as the library takes them."""
        return ExtractSettings(
            self.batch_size, self.workers, self.skip_broken, self.overwrite, self.store
        )


@with_groups
def extract(
    *,
    wanted: WantedOptions,
    model: ModelOptions,
    encoding: EncodingOptions,
    features_dir: FeaturesDir = FEATURES,
    class_photos: Annotated[
        Path | None,
        typer.Option(
            help="Example photos, in a folder for each class, for `simulate --prompt photos`."
        ),
    ] = None,
    paper: Annotated[
        bool,
        typer.Option(
            "--paper",
            help="Extract all sets and injected noise of the paper's tables, for each of its "
            "encoders.",
        ),
    ] = False,
    parts: PartOptions,
    dry_run: DryRun = False,
) -> None:
    """Encode data sets once: features of images and class names.

    Image features, class text features and noise images go to HDF5 files.
    """
    parts.check(wanted.dataset or (), {
        "--words": wanted.words, "--noise": wanted.noise, "--noise-count": wanted.noise_count,
        "--class-photos": class_photos, "--paper": paper,
        "--dry-run": dry_run, "--overwrite": encoding.overwrite,
    })  # fmt: skip
    _check_wanted(wanted, class_photos, paper)
    from zsntta_cli.progress import ConsoleReporter

    plan, choice, reporter = wanted.plan(), model.choice(), ConsoleReporter()
    extraction = _Extraction(plan, choice, features_dir, encoding, reporter, class_photos)
    if parts.are_asked:
        settings = encoding.settings()
        parts.extract(plan, choice, encoding.device, features_dir, settings, reporter)
    elif paper:
        extraction.extract_paper(choice if model.names_model else None, dry_run)
    else:
        extraction.extract(wanted.dataset or (), dry_run)


def _check_wanted(wanted: WantedOptions, class_photos: Path | None, paper: bool) -> None:
    """Refuse options that say nothing to extract, or that do not go together.

    Raises:
        UsageError: there are such.
    """
    if paper and (wanted.given or class_photos):
        raise misused("--paper says what to extract: leave --dataset and the like out.")
    if not (wanted.dataset or wanted.words or wanted.noise or paper):
        raise misused("say what to extract: --dataset NAME, a known set or NAME=PATH.")
    if class_photos and len(wanted.dataset or ()) != 1:
        raise misused("--class-photos has the classes of one set: name one --dataset.")


@dataclass(frozen=True)
class _Extraction:
    """A plan that is carried out, or foreseen, in this process."""

    plan: "ExtractPlan"
    choice: EncoderChoice
    root: Path  # of the features
    encoding: EncodingOptions
    reporter: "Reporter"
    class_photos: Path | None  # example photos of the first set's classes

    def extract_paper(self, named: EncoderChoice | None, is_dry: bool) -> None:
        """Extract what the paper needs, of all its encoders or of the one that is named."""
        from zsntta_cli.cli.results.extracting import PaperWish, extract_paper

        wish = PaperWish(
            self.plan.data_root, self.root, named, self.plan.limit, self.choice.precision,
        )  # fmt: skip
        device, settings = self.encoding.device, self.encoding.settings()
        extract_paper(wish, device, settings, self.reporter, is_dry)

    def extract(self, typed: Sequence[str], is_dry: bool) -> None:
        """Extract all sets, or say what would be; `typed` are the sets as they were typed."""
        if is_dry:
            self._foresee()
            return
        photos = self._photos()
        failures: Failures = {}
        self._extract_sets(photos, failures)
        if line := simulate_command(typed, self.choice, self.root):
            self.reporter.note(f"next: {line}{f' --prompt {PHOTOS}' if photos else ''}")
        for name, error in failures.items():
            self.reporter.note(f"not extracted: {name}: {first_line(error)}")
        if failures:
            raise DatasetError(
                f"{len(failures)} of {len(self.plan.datasets)} sets were not extracted: "
                f"{', '.join(failures)}."
            )

    def _extract_sets(self, photos: "PhotoClasses | None", failures: "Failures") -> None:
        """Extract all sets. Where there are several, one that fails ends no other."""
        from zsntta_cli.cache.store import read
        from zsntta_cli.cli.cache import say_accuracies
        from zsntta_cli.datasets.names import DATASET, SetName
        from zsntta_cli.extraction.extractor import summary
        from zsntta_cli.extraction.plan import extract

        names: list[str] = []
        device, settings = self.encoding.device, self.encoding.settings()
        kept = failures if len(self.plan.datasets) > 1 else None
        for extracted in extract(
            self.plan, self.choice, device, self.root, settings, self.reporter, kept
        ):
            say(summary(extracted))
            name = extracted.path.stem
            if name not in names and SetName.parse(name).kind == DATASET:
                say_accuracies(read(extracted.path))
            if photos and self.class_photos and not names:
                from zsntta_cli.detection.classes.photos import add_to_set

                add_to_set(extracted.path, self.class_photos, photos)
            names.append(name)

    def _photos(self) -> "PhotoClasses | None":
        """The example photos, before the set: what is wrong with photos is told at once."""
        if self.class_photos is None:
            return None
        from zsntta_cli.datasets.decoding import limited_to
        from zsntta_cli.detection.classes.photos import photo_classes
        from zsntta_cli.detection.encoding import Encoding

        device, workers = self.encoding.device, self.encoding.workers
        encoding = Encoding(self.choice, self.root, device, workers, self.reporter)
        with encoding.store, limited_to(None):
            return photo_classes(self.class_photos, encoding)

    def _foresee(self) -> None:
        """Say how much is there, and what would be made."""
        from zsntta_cli.extraction.foreseen import foresee

        say(foresee(self.plan, self.choice, self.root, self.encoding.overwrite))
        say(NOTHING_DONE)
