"""The work of `zsntta extract`: sets, word lists, noise images and OOD partners in turn."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from zsntta_cli import datasets
from zsntta_cli.datasets.class_names import twins, with_class_names
from zsntta_cli.datasets.drawn.builtin import noise_images
from zsntta_cli.datasets.images import DEEP, ImageSet, account, limited
from zsntta_cli.datasets.names import SetName, noise_name
from zsntta_cli.datasets.words import built_in_words, limited_words, read_words
from zsntta_cli.encoders.clip import Encoder, load_encoder
from zsntta_cli.encoders.weights import misspelt
from zsntta_cli.errors import DatasetError, EncoderError, SettingsError, StoreError, short
from zsntta_cli.extraction.extractor import Extracted, Extractor
from zsntta_cli.progress import Reporter
from zsntta_cli.settings import (
    NO_NOISE,
    NOISE_TYPES,
    RANDOM_WEIGHTS,
    TINY,
    EncoderChoice,
    ExtractSettings,
)
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
    prompts: tuple[str, ...] = ()  # templates or their names; the set's own without any
    noise: tuple[str, ...] | None = None  # types; None: gaussian where an ID set is extracted
    noise_count: int | None = None  # None: a quarter of the largest ID set, enough for 50 %, M = 8
    partners: bool = True  # the ID sets' OOD partners too, where no OOD set is named
    class_names: Path | None = None  # of the sets that are not in the catalogue
    as_shown: bool = False  # images are read as a viewer shows them, not as published
    pools: tuple[tuple[str, int], ...] = ()  # types of noise and images of each, if not by `noise`

    @property
    def templates(self) -> list[str]:
        """The prompts under which class features are stored; empty for the set's default."""
        return [*map(prompt_template, self.prompts)]

    def __post_init__(self) -> None:
        for name, value in (("limit", self.limit), ("noise-count", self.noise_count)):
            if value is not None and value < 1:
                raise SettingsError(f"{name} is {value}, must be 1 or more.")
        for noise in self.noise or ():
            check_choice("noise", noise, (*NOISE_TYPES, NO_NOISE))


def extract(
    plan: ExtractPlan,
    choice: EncoderChoice,
    device: str,
    root: Path,
    settings: ExtractSettings,
    reporter: Reporter,
    failures: Failures | None = None,
) -> Iterator[Extracted]:
    """Extract all sets of a plan, one by one: named sets, words, noise images, partners.

    With `failures`, a named set or noise that cannot be read, fetched or held in memory is put
    there, and the others go on.

    Raises:
        DatasetError: a name is no known set; this is raised before anything is encoded.
        EncoderError: the model's name is misspelt; this, too, is raised before.
    """
    if clause := misspelt(choice.model):
        raise EncoderError(f"{clause}.")
    for spec in plan.datasets:
        name = SetName.parse(spec)
        if not name.says_where:
            datasets.known(str(name))
    if choice.pretrained == RANDOM_WEIGHTS and choice.model != TINY:
        reporter.note("warning: these are random weights: features mean nothing.")
    load = partial(load_planned_encoder, choice, device, reporter)
    yield from _extract(plan, Extractor(choice, load, root, settings, reporter), failures)


def load_planned_encoder(choice: EncoderChoice, device: str, reporter: Reporter) -> Encoder:
    """The encoder of a plan; notes about it are reported."""
    encoder = load_encoder(choice, device)
    for note in encoder.notes:
        reporter.note(note)
    return encoder


def _extract(
    plan: ExtractPlan, extractor: Extractor, failures: Failures | None = None
) -> Iterator[Extracted]:
    templates = plan.templates
    largest_id_set = 0
    for spec in plan.datasets:
        try:
            extracted, is_id = _extract_set(spec, plan, extractor)
        except _OF_ONE_SET as error:
            if failures is None:
                raise
            failures[str(SetName.parse(spec))] = error
            continue
        largest_id_set = max(largest_id_set, extracted.images if is_id else 0)
        yield extracted
    for words in plan.words:
        yield from _extract_words(str(words), plan, templates, extractor)
    yield from _extract_noise(plan, extractor, largest_id_set, failures)
    yield from _extract_partners(plan, extractor)
    extractor.match_class_names()


def extract_part(
    plan: ExtractPlan,
    choice: EncoderChoice,
    device: str,
    root: Path,
    settings: ExtractSettings,
    reporter: Reporter,
    index: int,
    of: int,
) -> Extracted:
    """Extract part `index`, from 1, of `of` parts of the one set of a plan; `cache join` joins all.

    Raises:
        DatasetError: an image is broken. StoreError: the part's file is of another set or encoder.
    """
    [spec] = plan.datasets
    images, prompts = planned_set(spec, plan, reporter)
    load = partial(load_planned_encoder, choice, device, reporter)
    return Extractor(choice, load, root, settings, reporter).part(images, index, of, prompts)


def _extract_set(spec: str, plan: ExtractPlan, extractor: Extractor) -> tuple[Extracted, bool]:
    """Extract a whole named set, and return whether it can be an ID set."""
    images, prompts = planned_set(spec, plan, extractor.reporter)
    return extractor.dataset(images, prompts), datasets.has_text(images)


def planned_set(spec: str, plan: ExtractPlan, reporter: Reporter) -> tuple[ImageSet, Sequence[str]]:
    """The images of a set of a plan, and the prompts under which its classes are embedded."""
    images = limited(load_planned_images(spec, plan, reporter), plan.limit)
    of_set = prompts_of(images) if datasets.has_text(images) else ()
    return images, plan.templates or of_set


def load_planned_images(spec: str, plan: ExtractPlan, reporter: Reporter) -> ImageSet:
    """The images of a set; the user's own get the class names that are given for them."""
    images = datasets.load_images(spec, plan.data_root, plan.as_shown)
    if DEEP in images.reading:
        reporter.note(f"note: {images.name}: images of more than 8 bits are brought to 8.")
    if plan.class_names and SetName.parse(spec).says_where:
        images = with_class_names(images, plan.class_names)
    for note in _notes(images):
        reporter.note(f"note: {note}")
    if (images.labels >= 0).any() and not images.class_names:
        reporter.note(
            f"note: {images.name}: its labels have no class names, so it can only be an OOD set: "
            f"--class-names FILE gives them, one name per line."
        )
    if images.templates and images.class_names and not plan.templates:
        ensemble = short(ensemble_name(images.templates))
        reporter.note(
            f"{images.name}: {len(images.templates)} prompt templates of its own, whose features "
            f"are averaged ('{ensemble}'), beside '{datasets.default_prompt(images.name)}'."
        )
    return images


def _notes(images: ImageSet) -> Iterator[str]:
    """What was read of a set, and what should be known of its classes."""
    yield account(images)
    for note in (*images.notes, *twins(images.class_names, images.folder_names)):
        yield f"{images.name}: {note}"


def prompts_of(images: ImageSet) -> list[str]:
    """The prompts of an ID set: its default prompt, and the templates that it brings along."""
    ensemble = [ensemble_name(images.templates)] if images.templates else []
    return list(dict.fromkeys([datasets.default_prompt(images.name), *ensemble]))


def _extract_words(
    spec: str, plan: ExtractPlan, templates: Sequence[str], extractor: Extractor
) -> Iterator[Extracted]:
    """Extract the lists of a built-in set, under their own prompts, or the user's own list."""
    if built_in := lists_of(spec):
        lists = [(name, built_in_words(name), [prompt]) for name, prompt in built_in.items()]
    else:
        name, path = named_words(spec)
        speech_prompts = [p for p in [speech_prompt(name)] if p]
        lists = [(name, read_words(path), [*(templates or [DEFAULT_PROMPT, *speech_prompts])])]
    for name, words, prompts in lists:
        kept = limited_words(words, plan.limit)
        yield extractor.words(name, kept, prompts, plan.limit if len(kept) < len(words) else None)


def named_words(spec: str) -> tuple[str, Path]:
    """The name of a word list, with its part of speech, and its file: FILE, or NAME=FILE.

    Raises:
        DatasetError: the name is no valid file name, or is that of a built-in list.
    """
    parsed = SetName.parse(spec)
    name, path = (str(parsed), parsed.path) if parsed.path else (Path(spec).stem, Path(spec))
    if parsed.path and not re.fullmatch(r"[\w.-]+", name):
        raise DatasetError(
            f"'{name}' cannot name a word list: take letters, digits, '.', '_' or '-'."
        )
    if lists_of(name):
        raise DatasetError(f"'{name}' is a built-in word list: give yours a name, as mine=FILE.")
    return name, path


def _extract_noise(
    plan: ExtractPlan, extractor: Extractor, largest_id_set: int, failures: Failures | None
) -> Iterator[Extracted]:
    for noise, count in noise_pools(plan, largest_id_set):
        try:
            extracted = extractor.noise(noise, partial(noise_images, noise, count), count)
        except _OF_ONE_SET as error:
            if failures is None:
                raise
            failures[noise_name(noise)] = error
            continue
        yield extracted


def noise_pools(plan: ExtractPlan, largest_id_set: int) -> list[tuple[str, int]]:
    """The types of noise images to encode, and how many of each, for ID sets of some size."""
    if plan.pools:
        return [*plan.pools]
    types = plan.noise if plan.noise is not None else ("gaussian",) if largest_id_set else ()
    count = plan.noise_count or (max(1, largest_id_set // 4) if largest_id_set else _NOISE_COUNT)
    return [(noise, count) for noise in types if noise != NO_NOISE]


def _extract_partners(plan: ExtractPlan, extractor: Extractor) -> Iterator[Extracted]:
    """Extract the OOD sets that belong to the named ID sets, if they are available."""
    for name in wanted_partners(plan):
        extractor.reporter.note(f"{name}: an OOD partner of {', '.join(plan.datasets)}")
        try:
            images = datasets.load_images(name, plan.data_root, plan.as_shown)
        except DatasetError as error:
            extractor.reporter.note(f"left out: {error}")
            continue
        yield extractor.dataset(limited(images, plan.limit))


def wanted_partners(plan: ExtractPlan) -> list[str]:
    """The OOD sets that belong to the named ID sets; none if an OOD set is named."""
    bases = [SetName.parse(name).base for name in plan.datasets]  # of "cifar10-c:fog:1" too
    roles = [datasets.CATALOGUE[name].role for name in bases if name in datasets.CATALOGUE]
    if not plan.partners or len(roles) < len(plan.datasets) or "ood" in roles:
        return []
    return list(dict.fromkeys(p for name in plan.datasets for p in datasets.partners(name)))
