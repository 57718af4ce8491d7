"""`zsntta extract`: encode sets, one set in parts, or what the paper's tables need."""

import contextlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from zsntta_cli.cli.command import say
from zsntta_cli.cli.options import DATA_ROOT, DRY_RUN, ModelOptions, Names, option
from zsntta_cli.cli.values import data_sets, names
from zsntta_cli.datasets.names import DATASET, SetName, with_label
from zsntta_cli.errors import DatasetError, EncoderError, SettingsError, first_line
from zsntta_cli.settings import ENGINES, FEATURES, LOCAL, RAY, EncoderChoice, ExtractSettings
from zsntta_cli.settings.options import check_choice
from zsntta_cli.settings.prompts import PHOTOS, WORD_SETS

if TYPE_CHECKING:
    from zsntta_cli.cache.store import Features
    from zsntta_cli.extraction.plan import ExtractPlan
    from zsntta_cli.paper.runs import Wishes
    from zsntta_cli.progress import Reporter
    from zsntta_cli.simulation.runs import RunSettings

_encoded = partial(option, panel="What to encode")
_how = partial(option, panel="How it runs")


def extract(
    *,
    dataset: Names = _encoded(
        None,
        "Known set, or NAME=PATH for a folder, .tar, .zip or shards. From the hub: "
        "clip-benchmark/wds_NAME or NAME=hf:ORG/NAME:SPLIT.",
        reader=data_sets,
    ),
    data_root: Path = DATA_ROOT,
    limit: int | None = _encoded(
        None, "Maximum number of images per set, or of words per list. [all]"
    ),
    class_names: Path | None = _encoded(
        None, "File of the class names of a NAME=PATH set. Each line has a name, or a folder and "
        "its name. [the folders' names]",
    ),
    label: str | None = _encoded(
        None, "Where shards store labels: a JSON field, or the ending of the label files.",
        metavar="FIELD",
    ),
    prompt: Names = _encoded(
        None, "Template with one {}, or its name, such as 'code', 'paper' or 'clip-80'. "
        "'a {} | the {}' averages two. [the set's]", metavar="TEMPLATE",
    ),
    words: Names = _encoded(
        None, f"Word list: {', '.join(WORD_SETS)}, or a file (FILE or NAME=FILE) with "
        "one word per line.",
        metavar="NAME|FILE",
    ),
    noise: Names = _encoded(
        None, "Types of injected noise to encode as well, or 'none'. [gaussian for ID sets]",
        reader=names,
    ),
    noise_count: int | None = _encoded(
        None, "Number of images per type of injected noise. [a quarter of the ID set]"
    ),
    partners: bool = _encoded(
        True, "Also extract the ID set's partners if no OOD set is named. [yes]"
    ),
    as_shown: bool = _encoded(
        False, "Apply EXIF rotation and put transparent images on white, as detect does.",
        "--as-shown",
    ),
    class_photos: Path | None = _encoded(
        None, "Folder of example photos, one folder per class, for `simulate --prompt photos`."
    ),
    paper: bool = _encoded(
        False, "Extract all sets and injected noise that the paper's tables need, with each of its "
        "encoders.", "--paper",
    ),
    model: ModelOptions,
    encoding: ExtractSettings,
    part: str | None = _how(
        None, "Extract one part of the set, such as 3/64. zsntta cache join joins the parts.",
        metavar="I/N",
    ),
    engine: str = _how(
        LOCAL, "Where to extract the set: local, or ray (in parts, on the cluster at RAY_ADDRESS)."
    ),
    parts: int | None = _how(
        None, "Number of parts for --engine ray. [one per GPU, or per machine]", metavar="N"
    ),
    dry_run: bool = DRY_RUN,
) -> None:  # fmt: skip
    """Encode the images and class names of data sets.

    [bold]zsntta extract --dataset cifar10[/bold]

    [bold]zsntta extract --model tiny --dataset mine=photos --dataset glyphs[/bold]

    Image features, text features of the classes and injected noise are written to HDF5 files.
    """
    check_choice("engine", engine, ENGINES)
    if parts is not None and engine != RAY:
        raise SettingsError("--parts N needs --engine ray: add it, or make one part: --part 1/N.")
    if part is not None and engine == RAY:
        raise SettingsError("--part makes one part, --engine ray makes all: omit one of the two.")
    sets, alone = tuple(dataset or ()), "--part" if part is not None else "--engine ray"
    in_parts = part is not None or engine == RAY
    if in_parts and len(sets) != 1:
        raise SettingsError(f"{alone} extracts one set: name one --dataset.")
    excluded = {
        "--words": words, "--noise": noise, "--noise-count": noise_count,
        "--class-photos": class_photos, "--paper": paper, "--dry-run": dry_run,
        "--overwrite": encoding.overwrite,
    }  # fmt: skip
    if in_parts and (typed := [name for name, value in excluded.items() if value]):
        raise SettingsError(
            f"{alone} only encodes the images of a set and replaces nothing: omit "
            f"{', '.join(typed)}."
        )
    if paper and (sets or words or noise or noise_count or prompt or class_photos):
        raise SettingsError("--paper determines what to extract: omit --dataset and the like.")
    if not (sets or words or noise or paper):
        raise SettingsError("specify what to extract: --dataset NAME, a known set or NAME=PATH.")
    if class_photos and len(sets) != 1:
        raise SettingsError("--class-photos has the classes of one set: name one --dataset.")
    from zsntta_cli.cli.output import NOTHING_DONE
    from zsntta_cli.extraction import plan as work
    from zsntta_cli.extraction.extractor import Extractor
    from zsntta_cli.progress import ConsoleReporter

    choice, reporter = model.choice(), ConsoleReporter()
    plan = work.ExtractPlan(
        with_label(sets, label) if label is not None else sets, data_root, tuple(words or ()),
        limit, tuple(prompt or ()), tuple(noise) if noise else None, noise_count, partners,
        class_names, as_shown=as_shown,
    )  # fmt: skip
    failed = list[str]()
    if part is not None:
        index, _, of = part.partition("/")
        if not (index.isdecimal() and of.isdecimal() and 1 <= int(index) <= int(of)):
            raise SettingsError(f"part is '{part}', must be like 3/64, which is part 3 of 64.")
        extractor = Extractor(choice, encoding, reporter)
        say(work.extract_set(plan.names[0], plan, extractor, (int(index), int(of))).line)
    elif engine == RAY:
        from zsntta_cli.extraction.cluster import extract_on_ray

        for extracted in extract_on_ray(plan, choice, encoding, parts):
            say(extracted.line)
    elif paper:
        from zsntta_cli.paper.reproduction import runs_of_paper
        from zsntta_cli.paper.runs import Wishes

        named = choice if model.names_model else None
        wishes = Wishes(encoding.features_dir, named, choice.precision)
        runs = runs_of_paper(wishes)
        failed = extract_for(runs, wishes, plan, encoding, None if dry_run else reporter)
    elif dry_run:
        for line in work.foresee(plan, choice, encoding):
            say(line)
    else:
        failed = _extract_sets(plan, choice, encoding, reporter, class_photos)
    if dry_run:
        say(NOTHING_DONE)
    if failed:
        count = f"{len(failed)} of {len(sets)} sets were not extracted"
        every = f"not all available sets were extracted, {len(failed)} failed"
        raise DatasetError(f"{every if paper else count}: {', '.join(failed)}.")


def _extract_sets(
    plan: "ExtractPlan",
    choice: EncoderChoice,
    settings: ExtractSettings,
    reporter: "Reporter",
    class_photos: Path | None,
) -> list[str]:
    """Extract all sets, and return those that fail; of several, one that fails stops no other.

    The last line is the command that replays them.
    """
    from zsntta_cli.extraction.plan import extract

    if class_photos:  # before the set: unsuitable photos are refused at once
        from zsntta_cli.datasets.decoding import limited_to
        from zsntta_cli.detection.encoding import Encoding
        from zsntta_cli.detection.photos import add_to_set, photo_classes

        device, workers = settings.device, settings.workers
        encoding = Encoding(choice, settings.features_dir, device, workers, reporter)
        with encoding.store, limited_to(None):
            photos = photo_classes(class_photos, encoding)
    failed, sets = list[str](), list["Features"]()
    goes_on = failed if len(plan.datasets) > 1 else None
    for extracted in extract(plan, choice, settings, reporter, goes_on):
        say(extracted.line)
        if class_photos and not sets:
            add_to_set(extracted.path, class_photos, photos)
        sets.append(extracted.features)
    if line := _next_command(sets, choice, settings.features_dir):
        reporter.note(f"next: {line}{f' --prompt {PHOTOS}' if class_photos else ''}")
    return failed


def _next_command(sets: "Sequence[Features]", choice: EncoderChoice, root: Path) -> str:
    """The command that replays what was extracted, or that encodes noise for it first.

    It is empty where none of the sets can be an ID set.
    """
    from zsntta_cli.cache.folder import set_names
    from zsntta_cli.cache.identity import overlap
    from zsntta_cli.cache.store import read
    from zsntta_cli.datasets import partners

    of_images = [features for features in sets if features.kind == DATASET]
    id_set = next((features for features in of_images if features.texts), None)
    if id_set is None:
        return ""
    folder = id_set.path.parent
    cached = dict.fromkeys([f.name for f in of_images] + set_names(root, folder.name))
    words = [choice.options] if choice.options else []
    if root != FEATURES:
        words.append(f"--features-dir {shlex.quote(str(root))}")
    ood = ""
    if cached.keys().isdisjoint(partners(id_set.name)):
        del cached[id_set.name]
        files = (read(folder / f"{name}.h5", rows=False) for name in cached)
        ood = next((f" --ood {of.path.stem}" for of in files if not overlap(id_set, of)), "")
        if not ood:  # a stream without noise shows little
            encode = " ".join(["zsntta extract --dataset other=FOLDER", *words])
            return f"{encode}  # images of none of these classes, as noise: simulate --ood other"
    return " ".join([f"zsntta simulate --method zs-clip,adand --id {id_set.name}{ood}", *words])


def extract_for(
    runs: "Sequence[RunSettings]",
    wishes: "Wishes",
    plan: "ExtractPlan",
    settings: ExtractSettings,
    reporter: "Reporter | None",
) -> list[str]:
    """Extract the available sets that runs of the paper need, and say where to get the others.

    `plan` says where the sets are and how many images of each are taken at most. Without a
    reporter, the extractions are only listed. What is missing is listed before anything is encoded.
    If an encoder is not available, only its own sets fail. What could not be extracted is returned.
    """
    from zsntta_cli.datasets import CATALOGUE
    from zsntta_cli.extraction.plan import foresee
    from zsntta_cli.paper.runs import paper_extractions

    plans, absent = dict[EncoderChoice, "ExtractPlan"](), dict[str, None]()
    for extraction in paper_extractions(wishes, runs, plan.data_root, plan.limit):
        choice, names = extraction.choice, extraction.sets
        absent |= dict.fromkeys(SetName.parse(name).base for name in extraction.absent)
        plans[choice] = replace(plan, datasets=names, pools=extraction.pools, partners=False)
        if reporter is None:
            for line in foresee(plans[choice], choice, settings):
                say(line)
    if absent:
        say("Sets that are not available:")
    for base in absent:
        entry = CATALOGUE[base]
        megabytes = f"{entry.megabytes:,} MB" if entry.megabytes else ""
        by = "get" if entry.files else "show"
        say(f"  {base:<16}{entry.images:>7,} images {megabytes:>10}  zsntta datasets {by} {base}")
    if fetched := [base for base in absent if CATALOGUE[base].files]:
        say(f"zsntta datasets get {' '.join(fetched)}")
    return _extract_all(plans, settings, reporter) if reporter else []


def _extract_all(
    plans: "Mapping[EncoderChoice, ExtractPlan]", settings: ExtractSettings, reporter: "Reporter"
) -> list[str]:
    """Extract the sets of each encoder, after all weights are fetched, and return what fails."""
    from zsntta_cli.cache.folder import feature_path, folder_name
    from zsntta_cli.encoders.weights import fetch, foreseen
    from zsntta_cli.extraction.plan import extract, steps

    failed, unavailable = list[str](), set[EncoderChoice]()

    @contextlib.contextmanager
    def noted(choice: EncoderChoice) -> Iterator[None]:
        """Note that an encoder is not available; those of other sets go on."""
        try:
            yield
        except EncoderError as error:
            unavailable.add(choice)
            failed.append(f"all of {folder_name(choice)}")
            reporter.note(f"not extracted: {failed[-1]}: {first_line(error)}")

    for choice, plan in plans.items():
        folder = settings.features_dir, folder_name(choice)
        has_all = all(feature_path(*folder, name).exists() for name, _ in steps(plan, ()))
        with noted(choice):
            if not has_all and foreseen(choice):
                fetch(choice)
    for choice in [choice for choice in plans if choice not in unavailable]:
        of_sets = list[str]()
        with noted(choice):
            for extracted in extract(plans[choice], choice, settings, reporter, of_sets):
                say(extracted.line)
        failed += [f"{folder_name(choice)}/{name}" for name in of_sets]
    return failed
