"""The catalogue: one entry a data set. A new set is a line here, with a reader if it needs one.

Light: readers are imported when one of their sets is read.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from zsntta_cli import plugins
from zsntta_cli.settings.prompts import DEFAULT_PROMPT

if TYPE_CHECKING:
    from zsntta_cli.datasets.images import ImageSet

_ROOM = __name__.rpartition(".")[0]


class Reader:
    """A function of readers/ or drawn/, imported when it is called."""

    def __init__(self, where: str, **values: str) -> None:
        """`where` is "module:function", `values` are what it takes by name."""
        self._where, self._values = where, values

    def __call__(self, name: str, root: Path) -> "ImageSet":
        """The images of a set, by its name, from the data root."""
        module, _, function = self._where.partition(":")
        read = getattr(import_module(f"{_ROOM}.{module}"), function)
        images: ImageSet = read(name, root, **self._values)
        return images


@dataclass(frozen=True)
class DatasetEntry:
    """A known data set."""

    role: str  # "id": its class names are embedded too; "ood"; "both"; "shift": an ID set, changed
    images: int
    classes: int  # in the original; a flat folder has no labels
    split: str
    read: "Callable[[str, Path], ImageSet]"  # by name, from the data root
    prompt: str = DEFAULT_PROMPT
    partners: tuple[str, ...] = ()  # OOD sets that the paper (or the demo) pairs it with
    home: str = ""  # where to get it
    layout: str = ""  # files or folders expected under the data root
    megabytes: int = 0  # of the download
    licence: str = ""  # its terms, in short
    downloads: bool = False  # whether it is fetched where it is not on disk
    extra_partners: tuple[str, ...] = ()  # OOD sets of the paper's further experiments
    parameters: str = ""  # what follows the name
    also_images: tuple[int, ...] = ()  # other counts that a whole set is known to have
    cites: tuple[str, ...] = ()  # keys of report/references.bib


# The paper's 44 ID-OOD pairs.
_CIFAR_PARTNERS = ("svhn", "lsun", "texture", "places")
_PARTNERS = ("inaturalist", "sun", "texture", "places")

_CIFAR_HOME = "https://www.cs.toronto.edu/~kriz/cifar.html"
_MOS_HOME = "http://pages.cs.wisc.edu/~huangrui/imagenet_ood_dataset"  # of arXiv:2105.01879
_SEVERITY_1 = ":CORRUPTION:SEVERITY, such as :fog:1 or :all:1"
_IMAGENET_TERMS = "non-commercial research (terms of image-net.org)"

_ID_SETS = {
    "cifar10": DatasetEntry(
        "id", 10_000, 10, "test", Reader("readers.originals:cifar10"), partners=_CIFAR_PARTNERS,
        home=_CIFAR_HOME, layout="cifar-10-batches-py/",
        megabytes=170, licence="none stated; cite Krizhevsky 2009", downloads=True,
        cites=("krizhevsky2009learning",),
    ),
    "cifar100": DatasetEntry(
        "id", 10_000, 100, "test", Reader("readers.originals:cifar100"), partners=_CIFAR_PARTNERS,
        home=_CIFAR_HOME, layout="cifar-100-python/",
        megabytes=169, licence="none stated; cite Krizhevsky 2009", downloads=True,
        cites=("krizhevsky2009learning",),
    ),
    "cub200": DatasetEntry(
        "id", 11_788, 200, "train+test", Reader("readers.originals:cub200"), partners=_PARTNERS,
        home="https://www.vision.caltech.edu/datasets/cub_200_2011/",
        layout="CUB_200_2011/ with classes.txt, images.txt, image_class_labels.txt and images/",
        megabytes=1_151, licence="non-commercial research and education",
        cites=("wah2011caltech",),
    ),
    "cars196": DatasetEntry(
        "id", 16_185, 196, "train+test", Reader("readers.originals:cars196"), partners=_PARTNERS,
        home="a mirror: the official download is dead (github.com/pytorch/vision/issues/7545)",
        layout="stanford_cars/ with cars_train/*.jpg, cars_test/*.jpg, "
        "cars_test_annos_withlabels.mat, devkit/cars_meta.mat and devkit/cars_train_annos.mat",
        megabytes=1_954, licence="not stated",
        cites=("krause20133d",),
    ),
    "food101": DatasetEntry(
        "id", 25_250, 101, "test", Reader("readers.originals:food101"), partners=_PARTNERS,
        home="https://data.vision.ee.ethz.ch/cvl/datasets_extra/food-101/",
        layout="food-101/ with meta/test.json and images/<class>/*.jpg",
        megabytes=4_996, licence="scientific fair use", downloads=True,
        cites=("bossard2014food",),
    ),
    "pets37": DatasetEntry(
        "id", 7_349, 37, "trainval+test", Reader("readers.originals:pets37"), partners=_PARTNERS,
        home="https://www.robots.ox.ac.uk/~vgg/data/pets/",
        layout="oxford-iiit-pet/ with annotations/trainval.txt, annotations/test.txt and "
        "images/*.jpg",
        megabytes=811, licence="CC BY-SA 4.0", downloads=True,
        cites=("parkhi2012cats",),
    ),
    "imagenet": DatasetEntry(
        "id", 50_000, 1_000, "val", Reader("readers.imagenet:by_wnid", path="imagenet/val"),
        partners=_PARTNERS, extra_partners=("ninco",),
        home="https://www.image-net.org/download.php (after registration)",
        layout="imagenet/val/<wnid>/*.JPEG", megabytes=6_745, licence=_IMAGENET_TERMS,
        cites=("deng2009imagenet", "russakovsky2015imagenet"),
    ),
    "imagenet-sketch": DatasetEntry(  # the paper's ImageNet-K
        "id", 50_889, 1_000, "all", Reader("readers.imagenet:by_wnid", path="sketch"),
        partners=_PARTNERS,
        home="https://github.com/HaohanWang/ImageNet-Sketch", layout="sketch/<wnid>/*.JPEG",
        licence="repository MIT; images not stated",
        cites=("wang2019learning",),
    ),
    "imagenet-a": DatasetEntry(
        "id", 7_500, 200, "all", Reader("readers.imagenet:by_wnid", path="imagenet-a", subset="a"),
        partners=_PARTNERS, home="https://github.com/hendrycks/natural-adv-examples",
        layout="imagenet-a/<wnid>/*.jpg", megabytes=688,
        licence="repository MIT; images not stated",
        cites=("hendrycks2021natural",),
    ),
    "imagenet-v2": DatasetEntry(
        "id", 10_000, 1_000, "matched-frequency",
        Reader("readers.imagenet:by_number", path="imagenetv2-matched-frequency-format-val"),
        partners=_PARTNERS, home="https://github.com/modestyachts/ImageNetV2",
        layout="imagenetv2-matched-frequency-format-val/<0 to 999>/*.jpeg", megabytes=1_260,
        licence="repository MIT; images not stated",
        cites=("recht2019imagenet",),
    ),
    "imagenet-r": DatasetEntry(
        "id", 30_000, 200, "all", Reader("readers.imagenet:by_wnid", path="imagenet-r", subset="r"),
        partners=_PARTNERS, home="https://github.com/hendrycks/imagenet-r",
        layout="imagenet-r/<wnid>/*.jpg", megabytes=2_190,
        licence="repository MIT; images not stated",
        cites=("hendrycks2021many",),
    ),
}  # fmt: skip

_OOD_SETS = {
    "svhn": DatasetEntry(
        "ood", 26_032, 10, "test", Reader("readers.originals:svhn"),
        home="http://ufldl.stanford.edu/housenumbers/", layout="svhn/test_32x32.mat",
        megabytes=64, licence="non-commercial use", downloads=True,
        cites=("netzer2011reading",),
    ),
    "lsun": DatasetEntry(
        "ood", 10_000, 10, "test", Reader("readers.archives:folder_or_archive", path="lsun"),
        home="https://github.com/fyu/lsun (test_lmdb.zip: export its images)",
        layout="lsun/ with images, in class folders or not", licence="not stated",
        cites=("yu2015lsun",),
    ),
    "inaturalist": DatasetEntry(
        "ood", 10_000, 110, "subset of Huang & Li 2021",
        Reader("readers.archives:folder_or_archive", path="iNaturalist/images"),
        home=f"{_MOS_HOME}/iNaturalist.tar.gz", layout="iNaturalist/images/*.jpg",
        licence="not stated",
        cites=("van2018inaturalist", "huang2021mos"),
    ),
    "sun": DatasetEntry(
        "ood", 10_000, 50, "subset of Huang & Li 2021",
        Reader("readers.archives:folder_or_archive", path="SUN/images"),
        home=f"{_MOS_HOME}/SUN.tar.gz", layout="SUN/images/*.jpg", licence="not stated",
        cites=("xiao2010sun", "huang2021mos"),
    ),
    "places": DatasetEntry(
        "ood", 10_000, 50, "subset of Huang & Li 2021",
        Reader("readers.archives:folder_or_archive", path="Places/images"),
        home=f"{_MOS_HOME}/Places.tar.gz", layout="Places/images/*.jpg", licence="not stated",
        cites=("zhou2017places", "huang2021mos"),
    ),
    "texture": DatasetEntry(
        "ood", 5_640, 47, "all", Reader("readers.originals:texture"),
        home="https://www.robots.ox.ac.uk/~vgg/data/dtd/", layout="dtd/dtd/images/<class>/*.jpg",
        megabytes=625, licence="research use", downloads=True,
        cites=("cimpoi2014describing",),
    ),
    "ninco": DatasetEntry(
        "ood", 5_879, 64, "all",
        Reader("readers.archives:folder_or_archive", path="NINCO/NINCO_OOD_classes"),
        home="https://zenodo.org/record/8013288 (NINCO_all.tar.gz)", megabytes=15_393,
        layout="NINCO/NINCO_OOD_classes/<class>/", licence="repository MIT; images not stated",
        cites=("bitterwolf2023or",), also_images=(5_878,),  # counted once as 5,879
    ),
}  # fmt: skip

_SHIFTED_SETS = {
    "cifar10-c": DatasetEntry(
        "shift", 10_000, 10, "test, corrupted",
        Reader("readers.corruptions:cifar_c", path="CIFAR-10-C", classes="cifar10"),
        partners=("svhn",), home="https://zenodo.org/record/2535967",
        layout="CIFAR-10-C/ with labels.npy and <corruption>.npy", megabytes=2_918,
        licence="CC BY 4.0", parameters=_SEVERITY_1,
        cites=("hendrycks2019benchmarking", "krizhevsky2009learning"),
    ),
    "cifar100-c": DatasetEntry(
        "shift", 10_000, 100, "test, corrupted",
        Reader("readers.corruptions:cifar_c", path="CIFAR-100-C", classes="cifar100"),
        partners=("svhn",), home="https://zenodo.org/record/3555552",
        layout="CIFAR-100-C/ with labels.npy and <corruption>.npy", megabytes=2_918,
        licence="CC BY 4.0", parameters=_SEVERITY_1,
        cites=("hendrycks2019benchmarking", "krizhevsky2009learning"),
    ),
    "imagenet-c": DatasetEntry(
        "shift", 50_000, 1_000, "val, corrupted", Reader("readers.corruptions:imagenet_c"),
        partners=("inaturalist",), home="https://zenodo.org/record/2235448",
        layout="imagenet-c/<corruption>/<severity>/<wnid>/*.JPEG", licence="CC BY 4.0",
        parameters=_SEVERITY_1,
        cites=("hendrycks2019benchmarking",),
    ),
}  # fmt: skip

_DRAWN = Reader("drawn.builtin:read")
_AT_HAND = "drawn on demand"
_LETTERS, _DIGITS = "a photo of the letter {}.", "a photo of the digit {}."

BUILTIN: dict[str, DatasetEntry] = {
    "shapes": DatasetEntry(
        "id", 10_000, 10, "built in", _DRAWN,
        partners=("glyphs", "textures", "other-shapes", "digits"), home=_AT_HAND, licence="MIT",
        cites=("zsntta",),
    ),
    "glyphs": DatasetEntry(
        "ood", 10_000, 20, "built in", _DRAWN, _LETTERS, home=_AT_HAND, licence="MIT",
        cites=("zsntta",),
    ),
    "textures": DatasetEntry(
        "ood", 10_000, 10, "built in", _DRAWN, home=_AT_HAND, licence="MIT", cites=("zsntta",)
    ),
    "other-shapes": DatasetEntry(
        "ood", 10_000, 10, "built in", _DRAWN, home=_AT_HAND, licence="MIT",
        cites=("zsntta",),
    ),
    "digits": DatasetEntry(
        "both", 1_797, 10, "built in", _DRAWN, _DIGITS, home="scikit-learn", licence="BSD",
        cites=("alpaydin1998optical", "pedregosa2011scikit"),
    ),
}  # fmt: skip

CATALOGUE: dict[str, DatasetEntry] = _ID_SETS | _OOD_SETS | _SHIFTED_SETS | BUILTIN

plugins.watch("data set", CATALOGUE, DatasetEntry, "zsntta.datasets")
