"""The catalogue: one entry a data set. A new set is a line here, with a reader if it needs one."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from zsntta_cli.datasets import readers
from zsntta_cli.datasets.builtin import BUILTIN
from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.vocabulary import DEFAULT_PROMPT


@dataclass(frozen=True)
class Entry:
    """A known data set."""

    role: str  # "id": its class names are embedded too; "ood"; "both"
    images: int
    classes: int
    split: str
    read: Callable[[str, Path], ImageSet]  # by name, from the data root
    prompt: str = DEFAULT_PROMPT
    partners: tuple[str, ...] = ()  # OOD sets that the paper (or the demo) pairs it with
    home: str = ""  # where to get it
    layout: str = ""  # files or folders expected under the data root
    megabytes: int = 0  # of the download
    licence: str = ""  # its terms, in short
    downloads: bool = False  # whether it is fetched where it is not on disk


_CIFAR_PARTNERS = ("svhn", "lsun", "texture", "places")  # the paper's ID-OOD pairs
_BUILTIN_PARTNERS = ("glyphs", "textures", "other-shapes", "digits")

CATALOGUE: dict[str, Entry] = {
    "cifar10": Entry(
        "id", 10_000, 10, "test", readers.cifar10, partners=_CIFAR_PARTNERS,
        home="https://www.cs.toronto.edu/~kriz/cifar.html", layout="cifar-10-batches-py/",
        megabytes=170, licence="none stated; cite Krizhevsky 2009", downloads=True,
    ),
    "cifar100": Entry(
        "id", 10_000, 100, "test", readers.cifar100, partners=_CIFAR_PARTNERS,
        home="https://www.cs.toronto.edu/~kriz/cifar.html", layout="cifar-100-python/",
        megabytes=169, licence="none stated; cite Krizhevsky 2009", downloads=True,
    ),
    "svhn": Entry(
        "ood", 26_032, 10, "test", readers.svhn,
        home="http://ufldl.stanford.edu/housenumbers/", layout="svhn/test_32x32.mat",
        megabytes=64, licence="non-commercial use", downloads=True,
    ),
    "texture": Entry(
        "ood", 5_640, 47, "all", readers.texture,
        home="https://www.robots.ox.ac.uk/~vgg/data/dtd/", layout="dtd/dtd/images/<class>/*.jpg",
        megabytes=625, licence="research use", downloads=True,
    ),
} | {
    name: Entry(
        "both" if name == "digits" else entry.role, entry.count, len(entry.class_names),
        "built in", readers.builtin, entry.prompt,
        _BUILTIN_PARTNERS if name == "shapes" else (),
        home="scikit-learn" if name == "digits" else "drawn on demand",
        licence="BSD" if name == "digits" else "MIT",
    )
    for name, entry in BUILTIN.items()
}  # fmt: skip
