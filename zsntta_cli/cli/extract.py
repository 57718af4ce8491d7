"""`zsntta extract`: sets, or one set in parts."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from zsntta_cli.cli.command import say
from zsntta_cli.cli.options import DataRoot, DryRun, ModelOptions, option
from zsntta_cli.cli.values import data_sets, known_sets, names
from zsntta_cli.datasets.names import DATASET, with_label
from zsntta_cli.errors import DatasetError, SettingsError, first_line
from zsntta_cli.settings import (
    DATA,
    ENGINES,
    FEATURES,
    LOCAL,
    RAY,
    EncoderChoice,
    ExtractSettings,
)
from zsntta_cli.settings.options import check_choice
from zsntta_cli.settings.prompts import PHOTOS, WORD_SETS, averaged_prompt

if TYPE_CHECKING:
    from zsntta_cli.cache.store import Features
    from zsntta_cli.detection.photos import PhotoClasses
    from zsntta_cli.extraction.plan import ExtractPlan, Failures
    from zsntta_cli.progress import Reporter


@dataclass(frozen=True)
class WantedOptions:
    """What is to be extracted."""

    dataset: Annotated[
        list[str] | None,
        option(
            panel="What is encoded",
            reader=data_sets,
            help="Known sets; NAME=PATH of a folder, .tar, .zip or shards; of the hub "
            "clip-benchmark/wds_NAME or NAME=hf:ORG/NAME:SPLIT.",
            autocompletion=known_sets,
        ),
    ] = None
    data_root: DataRoot = DATA
    limit: Annotated[
        int | None,
        option(
            panel="What is encoded",
            help="Largest number of images of a set, or of words of a list. [all]",
        ),
    ] = None
    class_names: Annotated[
        Path | None,
        option(
            panel="What is encoded",
            help="Class names of a NAME=PATH set: one per line, or a folder and its name per "
            "line. [the folders']",
        ),
    ] = None
    label: Annotated[
        str | None,
        option(
            panel="What is encoded",
            metavar="FIELD",
            help="What has the labels of shards: a field of the JSON, or the ending of files.",
        ),
    ] = None
    prompt: Annotated[
        list[str] | None,
        option(
            panel="What is encoded",
            metavar="TEMPLATE",
            help="Template with one {}, or 'code', 'paper', 'clip-80' …. [the set's]",
        ),
    ] = None
    template: Annotated[
        list[str] | None,
        option(
            panel="What is encoded",
            metavar="TEMPLATE",
            help="One of several templates, whose features are averaged.",
        ),
    ] = None
    words: Annotated[
        list[str] | None,
        option(
            panel="What is encoded",
            metavar="NAME|FILE",
            help=f"Word list: {', '.join(WORD_SETS)}; or FILE or NAME=FILE, a word per line.",
        ),
    ] = None
    noise: Annotated[
        list[str] | None,
        option(
            panel="What is encoded",
            reader=names,
            help="Types of injected noise to encode as well, or 'none'. [gaussian for ID sets]",
        ),
    ] = None
    noise_count: Annotated[
        int | None,
        option(
            panel="What is encoded",
            help="Images of each type of injected noise. [a quarter of the ID set]",
        ),
    ] = None
    partners: Annotated[
        bool,
        option(
            panel="What is encoded",
            help="Also extract the ID set's partners, if no OOD set is named.",
        ),
    ] = True
    as_shown: Annotated[
        bool,
        option(
            "--as-shown",
            panel="What is encoded",
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
        from zsntta_cli.extraction.plan import ExtractPlan

        sets = tuple(self.dataset or ())
        sets = sets if self.label is None else with_label(sets, self.label)
        averaged = [averaged_prompt(self.template)] if self.template else []
        return ExtractPlan(
            sets, self.data_root, tuple(self.words or ()),
            self.limit, (*(self.prompt or ()), *averaged),
            tuple(self.noise) if self.noise else None, self.noise_count, self.partners,
            self.class_names, as_shown=self.as_shown,
        )  # fmt: skip


@dataclass(frozen=True)
class PartOptions:
    """Which parts of a set are made, and what makes them."""

    part: Annotated[
        str | None,
        option(
            panel="How it runs",
            metavar="I/N",
            help="Extract one part of the set, 3/64; zsntta cache join joins all.",
        ),
    ] = None
    engine: Annotated[
        str,
        option(
            panel="How it runs",
            help="What extracts the set: local; or ray, in parts on the cluster at RAY_ADDRESS.",
        ),
    ] = LOCAL
    parts: Annotated[
        int | None,
        option(
            panel="How it runs",
            metavar="N",
            help="Parts for --engine ray. [one for each GPU, or each machine]",
        ),
    ] = None

    @property
    def are_asked(self) -> bool:
        """Whether a set is extracted in parts."""
        return self.part is not None or self.engine == RAY


def extract(
    *,
    wanted: WantedOptions,
    model: ModelOptions,
    encoding: ExtractSettings,
    class_photos: Annotated[
        Path | None,
        option(
            panel="What is encoded",
            help="Example photos, in a folder for each class, for `simulate --prompt photos`.",
        ),
    ] = None,
    paper: Annotated[
        bool,
        option(
            "--paper",
            panel="What is encoded",
            help="Extract all sets and injected noise of the paper's tables, for each of its "
            "encoders.",
        ),
    ] = False,
    parts: PartOptions,
    dry_run: DryRun = False,
) -> None:
    """Encode data sets once: features of images and class names.

    [bold]zsntta extract --dataset cifar10[/bold]

    [bold]zsntta extract --model tiny --dataset mine=photos --dataset glyphs[/bold]

    Image features, class text features and noise images go to HDF5 files.
    """
    _check_parts(parts, wanted, {
        "--words": wanted.words, "--noise": wanted.noise, "--noise-count": wanted.noise_count,
        "--class-photos": class_photos, "--paper": paper,
        "--dry-run": dry_run, "--overwrite": encoding.overwrite,
    })  # fmt: skip
    if paper and (wanted.given or class_photos):
        raise SettingsError("--paper says what to extract: leave --dataset and the like out.")
    if not (wanted.dataset or wanted.words or wanted.noise or paper):
        raise SettingsError("say what to extract: --dataset NAME, a known set or NAME=PATH.")
    if class_photos and len(wanted.dataset or ()) != 1:
        raise SettingsError("--class-photos has the classes of one set: name one --dataset.")
    from zsntta_cli.progress import ConsoleReporter

    plan, choice, reporter = wanted.plan(), model.choice(), ConsoleReporter()
    if parts.are_asked:
        _extract_parts(parts, plan, choice, encoding, reporter)
    elif paper:
        named = choice if model.names_model else None
        _extract_paper(plan, named, choice.precision, encoding, None if dry_run else reporter)
    elif dry_run:
        from zsntta_cli.cli.output import NOTHING_DONE
        from zsntta_cli.extraction.plan import foresee

        for line in foresee(plan, choice, encoding):
            say(line)
        say(NOTHING_DONE)
    else:
        failures = _extract_sets(plan, choice, encoding, reporter, class_photos)
        if failures:
            _say_failures(failures, reporter)
            raise DatasetError(
                f"{len(failures)} of {len(plan.datasets)} sets were not extracted: "
                f"{', '.join(failures)}."
            )


def _extract_paper(
    plan: "ExtractPlan",
    named: EncoderChoice | None,
    precision: str,
    settings: ExtractSettings,
    reporter: "Reporter | None",
) -> None:
    """Extract what all of the paper needs; without a reporter, say what that would be.

    Raises:
        DatasetError: sets that are at hand and could not be extracted.
    """
    from zsntta_cli.cli.extract_paper import extract_for
    from zsntta_cli.paper.extracting import runs_of_paper
    from zsntta_cli.paper.runs import Wishes

    wishes = Wishes(settings.features_dir, named, precision)
    failures = extract_for(runs_of_paper(wishes), wishes, plan, settings, reporter)
    if reporter is None:
        from zsntta_cli.cli.output import NOTHING_DONE

        say(NOTHING_DONE)
        return
    if failures:
        _say_failures(failures, reporter)
        raise DatasetError(
            f"not all available sets were extracted, {len(failures)} failed: {', '.join(failures)}."
        )


def _say_failures(failures: "Failures", reporter: "Reporter") -> None:
    for name, error in failures.items():
        reporter.note(f"not extracted: {name}: {first_line(error)}")


def _extract_sets(
    plan: "ExtractPlan",
    choice: EncoderChoice,
    settings: ExtractSettings,
    reporter: "Reporter",
    class_photos: Path | None,
) -> "Failures":
    """Extract all sets, and give those that fail, which end no other where there are several.

    The last line is the command that replays them.
    """
    from zsntta_cli.extraction.extractor import summary
    from zsntta_cli.extraction.plan import extract

    photos = _photo_classes(class_photos, choice, settings, reporter) if class_photos else None
    failures: Failures = {}
    kept = failures if len(plan.datasets) > 1 else None
    sets: list[Features] = []
    for extracted in extract(plan, choice, settings, reporter, kept):
        say(summary(extracted))
        if photos and class_photos and not sets:
            from zsntta_cli.detection.photos import add_to_set

            add_to_set(extracted.path, class_photos, photos)
        sets.append(extracted.features)
    if line := _next_command(sets, choice, settings.features_dir):
        reporter.note(f"next: {line}{f' --prompt {PHOTOS}' if photos else ''}")
    return failures


def _photo_classes(
    folder: Path, choice: EncoderChoice, settings: ExtractSettings, reporter: "Reporter"
) -> "PhotoClasses":
    """The example photos, before the set: what is wrong with photos is told at once."""
    from zsntta_cli.datasets.decoding import limited_to
    from zsntta_cli.detection.encoding import Encoding
    from zsntta_cli.detection.photos import photo_classes

    encoding = Encoding(choice, settings.features_dir, settings.device, settings.workers, reporter)
    with encoding.store, limited_to(None):
        return photo_classes(folder, encoding)[0]


def _check_parts(parts: PartOptions, wanted: WantedOptions, others: Mapping[str, object]) -> None:
    """Refuse what does not go with parts, which are of one set alone.

    Raises:
        SettingsError: several sets are named, or other options.
    """
    check_choice("engine", parts.engine, ENGINES)
    if parts.parts is not None and parts.engine != RAY:
        raise SettingsError("--parts N is of --engine ray: add it, or make one part by --part 1/N.")
    if not parts.are_asked:
        return
    if parts.part is not None and parts.engine == RAY:
        raise SettingsError("--part makes one part here, --engine ray all: leave one of them out.")
    option = "--part" if parts.part is not None else "--engine ray"
    if len(wanted.dataset or ()) != 1:
        raise SettingsError(f"{option} is of one set: name one --dataset.")
    if given := [name for name, value in others.items() if value]:
        raise SettingsError(
            f"{option} only makes the features of a set's images and replaces none: leave "
            f"{', '.join(given)} out."
        )


def _extract_parts(
    parts: PartOptions,
    plan: "ExtractPlan",
    choice: EncoderChoice,
    settings: ExtractSettings,
    reporter: "Reporter",
) -> None:
    """Make one part of the plan's set; or all on a cluster, and join them.

    Raises:
        SettingsError: the text is no part.
    """
    from zsntta_cli.extraction.extractor import summary
    from zsntta_cli.extraction.plan import extract_part

    if parts.part is None:
        from zsntta_cli.extraction.cluster import extract_on_ray

        for extracted in extract_on_ray(plan, choice, settings, parts.parts):
            say(summary(extracted))
        return
    index, _, of = parts.part.partition("/")
    if not (index.isdecimal() and of.isdecimal() and 1 <= int(index) <= int(of)):
        raise SettingsError(f"part is '{parts.part}', must be like 3/64, which is part 3 of 64.")
    say(summary(extract_part(plan, choice, settings, reporter, (int(index), int(of)))))


def _next_command(
    extracted: "Sequence[Features]", choice: EncoderChoice, features_dir: Path
) -> str:
    """The command that replays what was extracted, or that encodes noise for it first.

    It is empty where none of the sets can be an ID set.
    """
    from zsntta_cli.cache.folder import set_names
    from zsntta_cli.cache.identity import overlap
    from zsntta_cli.cache.store import read
    from zsntta_cli.datasets import partners

    sets = {of.name: of for of in extracted if of.kind == DATASET}
    id_set = next((features for features in sets.values() if features.texts), None)
    if id_set is None:
        return ""
    folder = id_set.path.parent
    cached = set_names(features_dir, folder.name)
    has_partner = not {*partners(id_set.name)}.isdisjoint(cached)
    others = (
        f" --ood {name}"
        for name in [*sets, *cached]
        if name != id_set.name
        and not overlap(id_set, sets.get(name) or read(folder / f"{name}.h5", rows=False))
    )
    other = "" if has_partner else next(others, "")
    words = [choice.options] if choice.options else []
    if features_dir != FEATURES:
        words.append(f"--features-dir {shlex.quote(str(features_dir))}")
    if not has_partner and not other:  # a stream without noise shows little
        encode = " ".join(["zsntta extract --dataset other=FOLDER", *words])
        return f"{encode}  # images of none of these classes, as noise: simulate --ood other"
    return " ".join([f"zsntta simulate --method zs-clip,adand --id {id_set.name}{other}", *words])
