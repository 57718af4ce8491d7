"""The preview of `zsntta extract --dry-run`: which features exist, and which would be made.

Nothing is fetched or encoded. For a known set the catalogue has the number of images; the user's
folder or archive is listed.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from zsntta_cli import datasets
from zsntta_cli.cache.folder import feature_path, folder_name, parts_path
from zsntta_cli.cache.hdf5 import read_header
from zsntta_cli.datasets.names import HF, NOISE, SetName, noise_name, words_name
from zsntta_cli.datasets.presence import FLAWED, WHOLE
from zsntta_cli.datasets.words import built_in_words, read_words
from zsntta_cli.errors import counted
from zsntta_cli.extraction.plan import ExtractPlan, named_words, noise_pools, wanted_partners
from zsntta_cli.settings import EncoderChoice
from zsntta_cli.settings.prompts import lists_of

_ABSENT = ", not whole in"


class ForeseenFile(NamedTuple):
    """A feature file of a plan, in words, with the set that has to be fetched by hand for it."""

    line: str
    by_hand: str = ""


def foresee(
    plan: ExtractPlan, choice: EncoderChoice, root: Path, overwrite: bool = False
) -> Iterator[ForeseenFile]:
    """The feature files of a plan, in the order in which they would be made.

    Raises:
        DatasetError: a set is not known, or cannot be read.
    """
    folder, largest_id_set = folder_name(choice), 0

    def line(name: str, count: int, unit: str = "images", origin: str = "") -> str:
        path = feature_path(root, folder, name)
        if path.exists() and not overwrite:
            return f"{path}: {_count_there(path, count, unit)}"
        begun = ", begun before: it goes on" * parts_path(path).exists()
        of_all = f"all {unit}"  # of what is not here yet
        how_many = counted(count, unit.removesuffix("s")) if count else of_all
        return f"{path}: {how_many} to encode{origin}{begun}"

    def file(spec: str, prompts: int = 0, about: str = "") -> ForeseenFile:
        name, (count, _, origin) = SetName.parse(spec), _images(spec, plan)
        is_there = feature_path(root, folder, str(name)).exists() and not overwrite
        more = f"; class names under {prompts} more prompts to embed" * bool(prompts and is_there)
        by_hand = name.base if origin.startswith(_ABSENT) and not is_there else ""
        return ForeseenFile(line(str(name), count, origin=origin + about) + more, by_hand)

    for spec in plan.datasets:
        count, is_id, _ = _images(spec, plan)
        largest_id_set = max(largest_id_set, count * is_id)
        path = feature_path(root, folder, str(SetName.parse(spec)))
        yield file(spec, _lacking_prompts(path, plan) if is_id else 0)
    for words in plan.words:
        for name, count in _word_lists(str(words)):
            yield ForeseenFile(line(words_name(name), min(count, plan.limit or count), "words"))
    for noise, count in noise_pools(plan, largest_id_set):
        yield ForeseenFile(line(noise_name(noise), count))
    for name in wanted_partners(plan):
        yield file(name, about=", an OOD partner")


def _count_there(path: Path, count: int, unit: str) -> str:
    """The content of a feature file; a pool of noise may be too small."""
    header = read_header(path)
    held = header.images if unit == "images" else header.classes
    if SetName.parse(path.stem).kind == NOISE and held < count:
        return f"{held:,} {unit} there, {count - held:,} more to encode"
    return f"{counted(held, unit.removesuffix('s'))}, there already"


def _lacking_prompts(path: Path, plan: ExtractPlan) -> int:
    """How many of the named prompts an existing file lacks."""
    cached = read_header(path).templates if path.exists() else None
    wanted = {*plan.templates}
    return 0 if cached is None else len(wanted - {*cached})


def _images(spec: str, plan: ExtractPlan) -> tuple[int, bool, str]:
    """How many images a set has, whether it has class names, and where it comes from."""
    name = SetName.parse(spec)
    if name.hub and not _is_here(name, plan.data_root):
        return plan.limit or 0, True, f", of {name.hub}, which would be fetched from the hub"
    if name.says_where:
        images = datasets.load_images(spec, plan.data_root)
        return min(len(images), plan.limit or len(images)), datasets.has_text(images), ""
    entry = datasets.known(str(name))
    count = min(entry.images, plan.limit or entry.images)
    return count, entry.role != "ood", _origin(str(name), plan.data_root)


def _is_here(name: SetName, data_root: Path) -> bool:
    """Whether a set of the hub can be read without a request to the hub."""
    if name.hub.startswith(HF):
        return name.hub.startswith(f"{HF}/")
    from zsntta_cli.datasets.readers.clip_benchmark import is_fetched

    return is_fetched(name.hub, data_root)


def _origin(name: str, data_root: Path) -> str:
    """The origin of a known set."""
    entry = datasets.known(name)
    there = datasets.look(name, data_root)
    if not entry.layout:
        return f", {there.state}"
    if there.state == WHOLE:
        return f", in {data_root}"
    if there.state == FLAWED:
        return f"; it is {there}"
    if entry.downloads:
        return f", {entry.megabytes:,} MB to download from {entry.home}"
    return f"{_ABSENT} {data_root}"


def _word_lists(spec: str) -> list[tuple[str, int]]:
    """The lists that a name stands for, and the numbers of their words."""
    if built_in := lists_of(spec):
        return [(name, len(built_in_words(name))) for name in built_in]
    name, path = named_words(spec)
    return [(name, len(read_words(path)))]
