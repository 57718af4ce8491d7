"""`zsntta extract`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zsntta_cli.cli import completion
from zsntta_cli.cli.command import misused, say
from zsntta_cli.cli.dry import NOTHING_DONE, DryRun
from zsntta_cli.cli.hints import simulate_command
from zsntta_cli.cli.options import DataRoot, FeaturesDir, ModelOptions, with_groups
from zsntta_cli.cli.parts import check_engine, check_parts, extract_in_parts, extract_one_part
from zsntta_cli.errors import DatasetError, counted, first_line
from zsntta_cli.settings import DATA, FEATURES, LOCAL, NO_NOISE, EncoderChoice, ExtractSettings
from zsntta_cli.settings.prompts import PHOTOS, WORD_SETS, averaged_prompt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zsntta_cli.extraction.plan import ExtractPlan, Failures
    from zsntta_cli.progress import Reporter
    from zsntta_cli.settings import LiveSettings
    from zsntta_cli.settings.sentences import Sentences

_EXTRACT = ExtractSettings()


@with_groups
def extract(
    *,
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            help="A known set; NAME=PATH of a folder, .tar, .tar.gz, .zip or shards; of the hub "
            "clip-benchmark/wds_NAME or NAME=hf:ORG/NAME:SPLIT.",
            autocompletion=completion.known_sets,
        ),
    ] = None,
    model: ModelOptions,
    device: Annotated[
        str, typer.Option(help="auto, cpu, cuda (all GPUs), cuda:1, cuda:0,cuda:2 …")
    ] = "auto",
    engine: Annotated[
        str,
        typer.Option(help="What makes --parts: local; or ray, the cluster at RAY_ADDRESS."),
    ] = LOCAL,
    batch_size: Annotated[int, typer.Option(help="Images in an encoder pass.")] = (
        _EXTRACT.batch_size
    ),
    workers: Annotated[int, typer.Option(help="Threads that read images, for each device.")] = (
        _EXTRACT.workers
    ),
    data_root: DataRoot = DATA,
    features_dir: FeaturesDir = FEATURES,
    limit: Annotated[
        int | None,
        typer.Option(help="Largest number of images of a set, or of words of a list. [all]"),
    ] = None,
    class_names: Annotated[
        Path | None,
        typer.Option(
            help="Class names of a NAME=PATH set: one per line, or a folder and its name per "
            "line. [the folders']"
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            help="What has the labels of shards: a field of the JSON, or the ending of files.",
        ),
    ] = None,
    class_photos: Annotated[
        Path | None,
        typer.Option(
            help="Example photos, in a folder for each class, for `simulate --prompt photos`."
        ),
    ] = None,
    prompt: Annotated[
        list[str] | None,
        typer.Option(help="Template with one {}, or 'code', 'paper', 'clip-80' …. [the set's]"),
    ] = None,
    template: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEMPLATE", help="One of several templates, whose features are averaged."
        ),
    ] = None,
    prompts: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE.json",
            help="File of sentences for each class, as CuPL's, whose features are averaged.",
        ),
    ] = None,
    words: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Word list: {', '.join(WORD_SETS)}; or FILE or NAME=FILE, a word per line.",
            autocompletion=completion.word_sets,
        ),
    ] = None,
    noise: Annotated[
        list[str] | None,
        typer.Option(
            help="Type of injected noise to encode as well, or 'none'. [gaussian for ID sets]"
        ),
    ] = None,
    noise_count: Annotated[
        int | None,
        typer.Option(help="Images of each type of injected noise. [a quarter of the ID set]"),
    ] = None,
    partners: Annotated[
        bool, typer.Option(help="Also extract the ID set's partners, if no OOD set is named.")
    ] = True,
    as_shown: Annotated[
        bool,
        typer.Option(
            "--as-shown",
            help="Turn photos as their EXIF says, and put transparent ones on white, as detect "
            "does.",
        ),
    ] = False,
    store: Annotated[
        str,
        typer.Option(
            metavar="float16|float32",
            help="Type of the features in the file; float32 takes twice the space.",
        ),
    ] = _EXTRACT.store,
    as_is: Annotated[
        bool,
        typer.Option(
            "--as-is", help="Take known sets with other checksums, and without missing images."
        ),
    ] = False,
    skip_broken: Annotated[bool, typer.Option(help="Leave unreadable images out.")] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace files made from other images.")] = False,
    tpt: Annotated[
        bool,
        typer.Option(
            "--tpt",
            help="Store TPT's answer for each image, which takes long; its runs are then replays.",
        ),
    ] = False,
    published: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="ADDRESS",
            help="Address of published features, hf://USER/REPO; the rest is encoded here.",
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
    part: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="Extract one part of the set, 3/64; zsntta cache join joins all.",
        ),
    ] = None,
    parts: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Extract the set in so many parts: all that are missing, beside other workers; "
            "then join them.",
        ),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Encode data sets once: features of images and class names.

    Image features, class text features and noise images go to HDF5 files.
    """
    check_engine(engine, parts)
    if part is not None or parts is not None:
        check_parts(part, parts, dataset, {
            "--words": words, "--noise": noise, "--noise-count": noise_count,
            "--class-photos": class_photos, "--tpt": tpt, "--from": published, "--paper": paper,
            "--dry-run": dry_run, "--overwrite": overwrite,
        })  # fmt: skip
    names_prompts = prompt or template or prompts
    if paper and (dataset or words or noise or names_prompts or noise_count or class_photos):
        raise misused("--paper says what to extract: leave --dataset and the like out.")
    if paper and published:
        raise misused(f"--paper encodes: zsntta cache pull {published} fetches before it.")
    if not dataset and not words and not noise and not paper:
        raise misused("say what to extract: --dataset NAME, a known set or NAME=PATH.")
    if class_photos and len(dataset or ()) != 1:
        raise misused("--class-photos has the classes of one set: name one --dataset.")
    from zsntta_cli.cli.cache import say_accuracies
    from zsntta_cli.datasets.names import with_label
    from zsntta_cli.extraction.extractor import summary
    from zsntta_cli.extraction.plan import ExtractPlan
    from zsntta_cli.extraction.plan import extract as extract_all
    from zsntta_cli.progress import ConsoleReporter

    joined = [averaged_prompt(template)] if template else []
    plan = ExtractPlan(
        with_label(dataset or (), label), data_root, tuple(words or ()), limit,
        (*(prompt or ()), *joined),
        tuple(noise) if noise else None, noise_count, partners, class_names,
        as_is=as_is, as_shown=as_shown, sentences=_sentences(prompts or ()),
    )  # fmt: skip
    choice, reporter = model.choice(), ConsoleReporter()
    settings = ExtractSettings(batch_size, workers, skip_broken, overwrite, store)
    if part is not None or parts is not None:
        from zsntta_cli.extraction.sharded import PartsJob

        [spec] = plan.datasets
        job = PartsJob(spec, parts or 0, plan, choice, device, features_dir, settings)
        if part is not None:
            extract_one_part(job, part, reporter)
        else:
            extract_in_parts(job, engine, reporter)
        return
    if paper:
        from zsntta_cli.cli.results.extracting import PaperWish, extract_paper

        live = _live_settings(plan, choice, device, workers) if tpt else None
        named = choice if model.names_model else None
        wish = PaperWish(data_root, features_dir, named, limit, choice.precision, live)
        extract_paper(wish, device, settings, reporter, dry_run)
        return
    if published:
        from zsntta_cli.cli.published import PublishedFeatures

        features = PublishedFeatures(published, features_dir, dry_run)
        plan = features.without_published(plan, choice)
    if dry_run:
        _say_what_would_be_encoded(plan, choice, features_dir, overwrite, class_photos, tpt)
        return
    photos = None
    if class_photos:
        from zsntta_cli.datasets.decoding import limited_to
        from zsntta_cli.detection.classes.photos import add_to_set, photo_classes
        from zsntta_cli.detection.encoding import Encoding

        encoding = Encoding(choice, features_dir, device, workers, reporter)
        with (
            encoding.store,
            limited_to(None),
        ):  # before the set: what is wrong with photos is told at once
            photos = photo_classes(class_photos, encoding)
    names = []
    failures: Failures | None = {} if len(plan.datasets) > 1 else None
    for place, extracted in enumerate(
        extract_all(plan, choice, device, features_dir, settings, reporter, failures)
    ):
        say(summary(extracted))
        if extracted.path.stem not in names:
            say_accuracies(extracted.path)
        names.append(extracted.path.stem)
        if photos and class_photos and not place:
            add_to_set(extracted.path, class_photos, photos)
    if tpt:
        live = _live_settings(plan, choice, device, workers)
        _ask_tpt(plan, choice, features_dir, names, live, reporter)
    if line := simulate_command(dataset or (), choice, features_dir):
        reporter.note(f"next: {line}{f' --prompt {PHOTOS}' if photos else ''}")
    if failures:
        for name, error in failures.items():
            reporter.note(f"not extracted: {name}: {first_line(error)}")
        raise DatasetError(
            f"{len(failures)} of {len(plan.datasets)} sets were not extracted: "
            f"{', '.join(failures)}."
        )


def _sentences(files: "Sequence[Path]") -> "dict[str, Sentences]":
    """The prompts of files, by what class features made of them are filed under."""
    from zsntta_cli.settings.sentences import read_sentences

    return {sentences.filed: sentences for sentences in map(read_sentences, files)}


def _ask_tpt(
    plan: "ExtractPlan",
    choice: EncoderChoice,
    root: Path,
    names: "Sequence[str]",
    live: "LiveSettings",
    reporter: "Reporter",
) -> None:
    """Ask TPT about the images of the sets that were extracted, and say what became of each."""
    from zsntta_cli.cache.folder import folder_name
    from zsntta_cli.simulation.answering import extract_tpt, sets_to_ask

    folder, prompts = folder_name(root, choice), plan.templates
    asked = sets_to_ask(root, folder, names, _named(plan), prompts)
    for answered in extract_tpt(root, asked, live, reporter):
        say(answered.line)


def _live_settings(
    plan: "ExtractPlan", choice: EncoderChoice, device: str, workers: int
) -> "LiveSettings":
    """How TPT gets at the images that were extracted, and at the encoder."""
    from zsntta_cli.datasets.names import SetName
    from zsntta_cli.settings import LiveSettings

    weights = choice.pretrained if choice.is_file else None
    specs = tuple(spec for spec in plan.datasets if SetName.parse(spec).says_where)
    return LiveSettings(str(plan.data_root), specs, device, workers, weights)


def _named(plan: "ExtractPlan") -> list[str]:
    """The sets and the noise that the user has named, as they are called."""
    from zsntta_cli.datasets.names import SetName, noise_name

    sets = [str(SetName.parse(spec)) for spec in plan.datasets]
    return [*sets, *(noise_name(noise) for noise in plan.noise or () if noise != NO_NOISE)]


def _say_what_would_be_encoded(
    plan: "ExtractPlan",
    choice: EncoderChoice,
    root: Path,
    overwrite: bool,
    photos: Path | None,
    tpt: bool,
) -> None:
    """Say what of a plan is there, what would be encoded, and where its images come from."""
    from zsntta_cli.extraction.foreseen import foresee

    for file in foresee(plan, choice, root, overwrite):
        by_hand = f": zsntta datasets show {file.by_hand} says where from" * bool(file.by_hand)
        say(f"{file.line}{by_hand}")
    if photos:
        from zsntta_cli.detection.classes.photos import photo_items

        counts = [len(items) for items in photo_items(photos).values()]
        classes = counted(len(counts), "class", "classes")
        say(f"{photos}: {counted(sum(counts), 'example photo')} of {classes}")
    if tpt:
        from zsntta_cli.extraction.plan import wanted_partners

        names = ", ".join([*_named(plan), *wanted_partners(plan)])
        say(f"TPT would be asked about the images of {names}, each once.")
    say(NOTHING_DONE)
