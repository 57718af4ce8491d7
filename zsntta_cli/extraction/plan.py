"""The work of `zsntta extract`: sets, word lists, noise images, then OOD partners."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

from zsntta_cli import datasets
from zsntta_cli.cache.folder import feature_path, folder_name
from zsntta_cli.datasets.class_names import twins, with_class_names
from zsntta_cli.datasets.images import DEEP, account, limited
from zsntta_cli.datasets.names import DATASET, SetName, noise_name, words_name
from zsntta_cli.datasets.words import built_in_words, read_words
from zsntta_cli.encoders.weights import check_named, foreseen
from zsntta_cli.errors import DatasetError, SettingsError, StoreError, counted, short
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

# What ends one set: its files, its download, another set in its place, memory (also a GPU's).
_OF_ONE_SET = (DatasetError, StoreError, OSError, MemoryError, RuntimeError)
Failures = dict[str, Exception]  # sets that could not be extracted, as they were named, and why

_NOISE_COUNT = 2_500  # where no ID set says how many: enough for CIFAR's at 50 %, M = 8


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


class Step(NamedTuple):
    """The making of one feature file."""

    name: str
    make: Callable[[Extractor], Extracted]
    is_partner: bool = False  # it was not asked for by name


def extract(
    plan: ExtractPlan,
    choice: EncoderChoice,
    settings: ExtractSettings,
    reporter: Reporter,
    failures: Failures | None = None,
) -> Iterator[Extracted]:
    """Extract all sets of a plan, one after the other: named sets, words, noise images, partners.

    With `failures`, a set that cannot be read, fetched or held in memory is recorded there, and the
    other sets follow. A partner that is not available is skipped with a note.

    Raises:
        DatasetError: a set is unknown; raised before anything is encoded.
        EncoderError: the model's name is misspelt, or its weights are not a file; raised before
            anything is encoded.
    """
    check_named(choice)
    for called in plan.names:
        if not called.says_where:
            datasets.known(called)
    extractor, id_sizes = Extractor(choice, settings, reporter), list[int]()
    for step in steps(plan, id_sizes):
        try:
            extracted = step.make(extractor)
        except _OF_ONE_SET as error:
            if step.is_partner and isinstance(error, DatasetError):
                reporter.note(f"skipped: {error}")
            elif failures is None:
                raise
            else:
                failures[step.name] = error
            continue
        if extracted.features.kind == DATASET and extracted.features.texts:
            id_sizes.append(extracted.images)
        yield extracted
    extractor.match_class_names()


def extract_part(
    plan: ExtractPlan,
    choice: EncoderChoice,
    settings: ExtractSettings,
    reporter: Reporter,
    part: tuple[int, int],
) -> Extracted:
    """Extract a part of the only set of a plan, by its number from 1 and the number of parts.

    Raises:
        DatasetError: an image is broken.
        StoreError: the part's file is from a different set or encoder.
    """
    [called] = plan.names
    return _extract_set(called, plan, Extractor(choice, settings, reporter), part)


def foresee(plan: ExtractPlan, choice: EncoderChoice, settings: ExtractSettings) -> list[str]:
    """Count the feature files of a plan, and name those to make, to fetch and missing, in lines.

    Further lines have the gigabytes of sets to fetch, and say whether the weights are cached.

    Raises:
        DatasetError: a set is unknown.
        EncoderError: a path of weights is not a file.
    """
    check_named(choice)
    folder, kept, to_make, missing = folder_name(choice), 0, list[str](), list[str]()
    megabytes: dict[str, int] = {}  # of the sets that are to be fetched
    named = {str(name): name for name in plan.names}
    ids = [1 for name, of in named.items() if of.says_where or datasets.known(name).role != "ood"]
    for name, *_ in steps(plan, ids):
        path = feature_path(settings.features_dir, folder, name)
        if path.exists() and not settings.overwrite:
            kept += 1
            continue
        base, is_given = SetName.parse(name).base, name in named and named[name].says_where
        entry = datasets.CATALOGUE.get(base)
        if entry and not entry.is_there(plan.data_root):
            if entry.downloads:
                megabytes[base] = entry.megabytes
            elif not is_given:
                missing.append(name)
                continue
        to_make.append(name)
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


def steps(plan: ExtractPlan, id_sizes: Sequence[int]) -> Iterator[Step]:
    """The feature files of a plan, in the order in which they are made.

    `id_sizes` are the numbers of images of the ID sets that were made so far.
    """
    for called in plan.names:
        yield Step(str(called), partial(_extract_set, called, plan))
    for words in map(str, plan.words):
        lists: dict[str, tuple[Callable[[], list[str]], Sequence[str]]] = {}
        for name, prompt in lists_of(words).items():
            lists[name] = partial(built_in_words, name), [prompt]
        if not lists:
            name, path = _named_words(words)
            own = plan.prompts or [DEFAULT_PROMPT, *filter(None, [speech_prompt(name)])]
            lists[name] = partial(read_words, path), own
        for name, (read, prompts) in lists.items():
            make = partial(
                Extractor.words, name=name, read=read, templates=prompts, limit=plan.limit
            )
            yield Step(words_name(name), make)
    types = ("gaussian",) if plan.noise is None and id_sizes else plan.noise or ()
    count = plan.noise_count or (max(1, max(id_sizes) // 4) if id_sizes else _NOISE_COUNT)
    for noise, images in plan.pools or zip(types, repeat(count)):
        if noise != NO_NOISE:
            yield Step(noise_name(noise), partial(Extractor.noise, noise_type=noise, count=images))
    for name in _partners(plan) if plan.partners else ():
        yield Step(name, partial(_extract_partner, name, plan), is_partner=True)


def _partners(plan: ExtractPlan) -> list[str]:
    """The OOD sets that belong to the named ID sets; none if an OOD set is named."""
    for name in plan.names:
        entry = datasets.CATALOGUE.get(name.base)  # of "cifar10-c:fog:1" too
        if entry is None or entry.role == "ood":
            return []
    return list(dict.fromkeys(p for name in plan.names for p in datasets.partners(name)))


def _named_words(spec: str) -> tuple[str, Path]:
    """The name of a word list, with its part of speech, and its file: FILE, or NAME=FILE.

    Raises:
        DatasetError: the name is not a valid file name, or is that of a built-in list.
    """
    parsed = SetName.parse(spec)
    name, path = (str(parsed), parsed.path) if parsed.path else (Path(spec).stem, Path(spec))
    if parsed.path and not re.fullmatch(r"[\w.-]+", name):
        raise DatasetError(
            f"'{name}' cannot name a word list: use letters, digits, '.', '_' or '-'."
        )
    if lists_of(name):
        raise DatasetError(f"'{name}' is a built-in word list: name yours, as in mine=FILE.")
    return name, path


def _extract_partner(name: str, plan: ExtractPlan, extractor: Extractor) -> Extracted:
    """Extract an OOD set that belongs to the named ID sets, if it is available."""
    extractor.reporter.note(f"{name}: an OOD partner of {', '.join(plan.datasets)}")
    images = datasets.load_images(name, plan.data_root, plan.as_shown)
    return extractor.dataset(limited(images, plan.limit))


def _extract_set(
    called: SetName, plan: ExtractPlan, extractor: Extractor, part: tuple[int, int] | None = None
) -> Extracted:
    """Extract a named set or a part of it, with class names under the plan's or its own prompts.

    The user's own sets get the class names that are given for them. Notes describe how a set was
    read.
    """
    note = extractor.reporter.note
    images = datasets.load_images(called, plan.data_root, plan.as_shown)
    if plan.class_names and called.says_where:
        images = with_class_names(images, plan.class_names)
    name, prompts = images.name, plan.prompts
    note(f"note: {account(images)}")
    if DEEP in images.reading:
        note(f"note: {name}: images with more than 8 bits are reduced to 8.")
    for text in (*images.notes, *twins(images.class_names, images.folder_names)):
        note(f"note: {name}: {text}")
    if (images.labels >= 0).any() and not images.class_names:
        note(
            f"note: {name}: its labels have no class names, so it can only be an OOD set: "
            f"--class-names FILE gives them, one name per line."
        )
    if not prompts and datasets.has_text(images):
        prompts = (datasets.default_prompt(name),)
        if images.templates:
            prompts = (*prompts, ensemble_name(images.templates))
            note(
                f"{name}: the features of its own {len(images.templates)} prompt templates are "
                f"averaged ('{short(prompts[1])}'), besides '{prompts[0]}'."
            )
    return extractor.dataset(limited(images, plan.limit), [*dict.fromkeys(prompts)], part)
