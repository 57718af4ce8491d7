"""The work of `zsntta extract`: sets, word lists, noise images, then OOD partners."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, repeat
from pathlib import Path

from zsntta_cli import datasets
from zsntta_cli.cache.folder import feature_path, folder_name
from zsntta_cli.datasets.class_names import twins, with_class_names
from zsntta_cli.datasets.images import DEEP, account, limited
from zsntta_cli.datasets.names import DATASET, NOISE, SetName, noise_name, words_name
from zsntta_cli.datasets.shards import is_pattern
from zsntta_cli.datasets.words import built_in_words, read_words
from zsntta_cli.encoders.weights import check_named, foreseen
from zsntta_cli.errors import DatasetError, SettingsError, StoreError, counted, first_line, short
from zsntta_cli.extraction.extractor import Extracted, Extractor
from zsntta_cli.progress import Reporter
from zsntta_cli.settings import NO_NOISE, NOISE_TYPES, EncoderChoice, ExtractSettings
from zsntta_cli.settings.options import check_choice
from zsntta_cli.settings.prompts import (
    DEFAULT_PROMPT,
    ensemble_name,
    lists_of,
    prompt_template,
    speech_prompt,
)

# What ends one set alone: its files, its download, a different set under its name, memory.
_OF_ONE_SET = (DatasetError, StoreError, OSError, MemoryError, RuntimeError)

_NOISE_COUNT = 2_500  # without an ID set: enough for CIFAR's at 50 %, M = 8


@dataclass(frozen=True)
class ExtractPlan:
    """What is to be extracted."""

    datasets: tuple[str, ...]  # names, NAME=PATH, or of the hub
    data_root: Path = Path("data")
    words: tuple[Path | str, ...] = ()  # built-in ones, or a word a line: FILE or NAME=FILE
    limit: int | None = None
    prompts: tuple[str, ...] = ()  # names become templates; the set's own without any
    noise: tuple[str, ...] | None = None  # types; None: gaussian where an ID set is extracted
    noise_count: int | None = None  # None: a quarter of the largest ID set, enough for 50 %, M = 8
    partners: bool = True  # the ID sets' OOD partners too, where no OOD set is named
    class_names: Path | None = None  # of the sets that are not in the catalogue
    as_shown: bool = False  # images are read as a viewer shows them, not as published
    pools: tuple[tuple[str, int], ...] = ()  # types of noise and images of each, if not by `noise`

    def __post_init__(self) -> None:
        for name, value in (("limit", self.limit), ("noise-count", self.noise_count)):
            if value is not None and value < 1:
                raise SettingsError(f"{name} is {value}, must be 1 or more.")
        for noise in self.noise or ():
            check_choice("noise", noise, (*NOISE_TYPES, NO_NOISE))
        object.__setattr__(self, "prompts", tuple(map(prompt_template, self.prompts)))

    @cached_property
    def names(self) -> tuple[SetName, ...]:
        """The parsed names of its sets."""
        return tuple(map(SetName.parse, self.datasets))

    @cached_property
    def partner_names(self) -> tuple[str, ...]:
        """The OOD sets beside its ID sets that belong to them; none if an OOD set is named."""
        entries = [datasets.CATALOGUE.get(name.base) for name in self.names]
        if not self.partners or any(entry is None or entry.role == "ood" for entry in entries):
            return ()
        partners = dict.fromkeys(p for name in self.names for p in datasets.partners(name))
        return tuple(partner for partner in partners if partner not in map(str, self.names))


def extract(
    plan: ExtractPlan,
    choice: EncoderChoice,
    settings: ExtractSettings,
    reporter: Reporter,
    failed: list[str] | None = None,
) -> Iterator[Extracted]:
    """Extract all sets of a plan, one after the other: named sets, words, noise images, partners.

    Missing sets are fetched, or reported, before anything is encoded. With `failed`, a set that
    cannot be read, fetched or held in memory is added there, a note says why, and the other sets
    follow. A partner that is not available is skipped with a note.

    Raises:
        DatasetError: a set is unknown; raised before anything is encoded.
        EncoderError: the model's name is misspelt, or its weights are not a file; raised before
            anything is encoded.
    """
    check_named(choice)
    for called in plan.names:
        if not called.says_where:
            datasets.known(called)
    extractor = Extractor(choice, settings, reporter)
    id_sizes, ended = list[int](), set[str]()

    def is_usable(name: SetName) -> bool:
        return str(name) not in ended or extractor.path(str(name)).exists()

    checks: list[tuple[str, Callable[[Extractor], Extracted | None]]] = [
        (str(called), partial(_check_there, called, plan))
        for called in (*plan.names, *map(SetName.parse, plan.partner_names))
    ]
    for name, make in chain(checks, steps(plan, id_sizes)):
        is_noise = SetName.parse(name).kind == NOISE  # which is of no use if all sets are missing
        if name in ended or (is_noise and plan.names and not any(map(is_usable, plan.names))):
            continue
        try:
            extracted = make(extractor)
        except _OF_ONE_SET as error:
            ended.add(name)
            if name in plan.partner_names and isinstance(error, DatasetError):
                reporter.note(f"skipped: {error}")
            elif failed is None:
                raise
            else:
                failed.append(name)
                reporter.note(f"not extracted: {name}: {first_line(error)}")
            continue
        if extracted:
            if extracted.features.kind == DATASET and extracted.features.texts:
                id_sizes.append(extracted.images)
            yield extracted
    extractor.match_class_names()


def _check_there(called: SetName, plan: ExtractPlan, _: Extractor) -> None:
    """Fetch a set that is missing; DatasetError if it is unavailable or its corruption unknown."""
    datasets.check_corruption(called)
    if called.path:
        is_here = called.path.exists() or is_pattern(called.path)
    else:
        is_here = bool(called.hub) or datasets.known(called).is_there(plan.data_root)
    if not is_here:
        datasets.load_images(called, plan.data_root)


def foresee(plan: ExtractPlan, choice: EncoderChoice, settings: ExtractSettings) -> list[str]:
    """Lines on a plan: how many feature files exist, and which are to be made or are missing.

    Further lines have the gigabytes of sets to download, and say whether the weights are cached.

    Raises:
        DatasetError: a set is unknown.
        EncoderError: a path of weights is not a file.
    """
    check_named(choice)
    for called in plan.names:
        datasets.check_corruption(called)
    folder, kept, to_make, missing = folder_name(choice), 0, list[str](), list[str]()
    megabytes: dict[str, int] = {}  # of the sets to download
    named = {str(name): name for name in plan.names}
    ids = [1 for name in plan.names if name.says_where or datasets.known(name).role != "ood"]
    for name, _ in steps(plan, ids):
        called = named.get(name, SetName.parse(name))
        entry = None if called.says_where else datasets.CATALOGUE.get(called.base)
        is_here = entry is None or entry.is_there(plan.data_root)
        if feature_path(settings.features_dir, folder, name).exists() and not settings.overwrite:
            kept += 1
        elif entry is None or is_here or entry.downloads:
            to_make.append(name)
            if entry and not is_here:
                megabytes[called.base] = entry.megabytes
        else:
            missing.append(name)
    parts = [
        f"{len(names)} {what}" + (f" ({', '.join(names)})" if names else "")
        for what, names in (("to make", to_make), ("missing", missing))
    ]
    total = counted(kept + len(to_make) + len(missing), "feature file")
    where = f": zsntta datasets show {missing[0]} says where to get it" if missing else ""
    lines = [f"{settings.features_dir / folder}: {total}: {kept} kept, {', '.join(parts)}{where}"]
    if megabytes:
        lines.append(f"to fetch: {', '.join(megabytes)}: {sum(megabytes.values()) / 1000:.1f} GB")
    if to_make and (weights := foreseen(choice)):
        lines.append(weights)
    return lines


def steps(
    plan: ExtractPlan, id_sizes: Sequence[int]
) -> Iterator[tuple[str, Callable[[Extractor], Extracted]]]:
    """The feature files of a plan by name, and what makes them, in this order.

    `id_sizes` are the numbers of images of the ID sets that were made so far.
    """
    for called in plan.names:
        yield str(called), partial(extract_set, called, plan)
    for spec in map(str, plan.words):
        parsed, built_in = SetName.parse(spec), lists_of(spec)
        name, path = (str(parsed), parsed.path) if parsed.path else (Path(spec).stem, Path(spec))
        if not built_in and lists_of(name):
            raise DatasetError(f"'{name}' is a built-in word list: name yours, as in mine=FILE.")
        prompts = plan.prompts or [DEFAULT_PROMPT, *filter(None, [speech_prompt(name)])]
        for words, prompt in (built_in or {name: ""}).items():
            yield words_name(words), partial(
                Extractor.words, name=words_name(words), limit=plan.limit,
                read=partial(built_in_words, words) if built_in else partial(read_words, path),
                templates=[prompt] if built_in else prompts,
            )  # fmt: skip
    types = ("gaussian",) if plan.noise is None and id_sizes else plan.noise or ()
    count = plan.noise_count or (max(1, max(id_sizes) // 4) if id_sizes else _NOISE_COUNT)
    for noise, images in plan.pools or zip(types, repeat(count)):
        if noise != NO_NOISE:
            yield noise_name(noise), partial(Extractor.noise, noise_type=noise, count=images)
    for name in plan.partner_names:
        yield name, partial(extract_set, SetName.parse(name), plan)


def extract_set(
    called: SetName, plan: ExtractPlan, extractor: Extractor, part: tuple[int, int] | None = None
) -> Extracted:
    """Extract a set of a plan, or a part of it, by its number from 1 and the number of parts.

    A named set gets text features under the plan's prompts or its own, a partner gets none. The
    user's own sets get the plan's class names, if it has any. Notes describe how a set was read.

    Raises:
        DatasetError: an image is broken. StoreError: the file is from a different set or encoder.
    """
    images = datasets.load_images(called, plan.data_root, plan.as_shown)
    if plan.class_names and called.says_where:
        images = with_class_names(images, plan.class_names)
    name, prompts, notes = images.name, plan.prompts, list(images.notes)
    extractor.reporter.note(f"note: {account(images)}")
    if called.says_where:
        notes += twins(images.class_names, images.folder_names)
    if DEEP in images.reading:
        notes.insert(0, "images with more than 8 bits are reduced to 8.")
    if (images.labels >= 0).any() and not images.class_names:
        notes.append(
            "its labels have no class names, so it can only be an OOD set: --class-names FILE "
            "gives them, one name per line."
        )
    if name in plan.partner_names:
        notes, prompts = [f"an OOD partner of {', '.join(plan.datasets)}"], ()
    elif not prompts and datasets.has_text(images):
        prompts = (datasets.default_prompt(name),)
        if images.templates:
            prompts = (*prompts, ensemble_name(images.templates))
            notes.append(
                f"the features of its own {len(images.templates)} prompt templates are averaged "
                f"('{short(prompts[1])}'), besides '{prompts[0]}'."
            )
    for text in notes:
        extractor.reporter.note(f"note: {name}: {text}")
    return extractor.dataset(limited(images, plan.limit), [*dict.fromkeys(prompts)], part)
