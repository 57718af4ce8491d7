"""The catalogue: one entry a data set. A new set is a line here, with a reader if it needs one.

Light: readers are imported when one of their sets is read.
"""

import re
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
    """A function of this room, imported when it is called."""

    def __init__(self, where: str, **values: str) -> None:
        """`where` is "module:function", `values` are what it takes by name."""
        self._where, self._values = where, values
        self.places = values.get("places", "").split("|")  # below the data root, where it has some

    def __call__(self, name: str, root: Path) -> "ImageSet":
        """The images of a set, by its name, from the data root."""
        module, _, function = self._where.partition(":")
        read = getattr(import_module(f"{_ROOM}.{module}"), function)
        images: ImageSet = read(name, root, **self._values)
        return images


@dataclass(frozen=True)
class Download:
    """A file that a set, or a part of it, is fetched from."""

    address: str
    file: str  # where it is put, below the data root
    checksum: str = ""  # "md5:…" or "sha256:…", as published; none where none is
    unpacks: str = ""  # its folder of this name is put here, below the data root; else it stays


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
    packed: tuple[str, ...] = ()  # archives that are read where they lie, instead of the layout
    files: tuple[Download, ...] = ()  # what `datasets get` fetches

    def place(self, root: Path) -> Path | None:
        """What there is of the set below the data root; None if there is nothing."""
        own = self.read.places if isinstance(self.read, Reader) else []
        folder, *_ = re.split(r" with |/?[<*]|/$", self.layout)
        files = (*self.packed, *(file.unpacks or file.file for file in self.files))
        tops = [place.partition("/")[0] for place in (folder, *own)]
        packed = [f"{top}{ending}" for top in tops for ending in (".tar", ".zip") if top]
        places = (root / place for place in (*own, folder, *packed, *files) if place)
        return next((p for p in places if p.is_file() or (p.is_dir() and any(p.iterdir()))), None)


# The paper's 44 ID-OOD pairs.
_CIFAR_PARTNERS = ("svhn", "lsun", "texture", "places")
_PARTNERS = ("inaturalist", "sun", "texture", "places")

_CIFAR_HOME = "https://www.cs.toronto.edu/~kriz/cifar.html"
_MOS_HOME = "http://pages.cs.wisc.edu/~huangrui/imagenet_ood_dataset"  # of arXiv:2105.01879
SEVERITY = ":CORRUPTION:SEVERITY, such as :fog:1 or :all:1"
CORRUPTIONS = (  # that benchmarks of corrupted sets average over, arXiv:1903.12261
    "gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur",
    "zoom_blur", "snow", "frost", "fog", "brightness", "contrast", "elastic_transform",
    "pixelate", "jpeg_compression",
)  # fmt: skip
_HUB = "https://huggingface.co/datasets"
_VGG = "https://www.robots.ox.ac.uk/~vgg/data"
_DROPBOX = "https://www.dropbox.com/s/raw"
_BERKELEY = "https://people.eecs.berkeley.edu/~hendrycks"
_ODIN_HOME = "https://github.com/facebookresearch/odin"
_OPENOOD_HOME = "https://github.com/Jingkang50/OpenOOD"
_IMAGENET_TERMS = "non-commercial research (terms of image-net.org)"

_ID_SETS = {
    "cifar10": DatasetEntry(
        "id", 10_000, 10, "test", Reader("known_sets:cifar", kind="CIFAR10"),
        partners=_CIFAR_PARTNERS,
        home=_CIFAR_HOME, layout="cifar-10-batches-py/",
        megabytes=170, licence="none stated; cite Krizhevsky 2009", downloads=True,
        cites=("krizhevsky2009learning",),
        files=(Download(
            "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz", "cifar-10-python.tar.gz",
            "md5:c58f30108f718f92721af3b95e74349a", "cifar-10-batches-py",
        ),),
    ),
    "cifar100": DatasetEntry(
        "id", 10_000, 100, "test", Reader("known_sets:cifar", kind="CIFAR100"),
        partners=_CIFAR_PARTNERS,
        home=_CIFAR_HOME, layout="cifar-100-python/",
        megabytes=169, licence="none stated; cite Krizhevsky 2009", downloads=True,
        cites=("krizhevsky2009learning",),
        files=(Download(
            "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz", "cifar-100-python.tar.gz",
            "md5:eb9058c3a382ffc7106e4002c42a8d85", "cifar-100-python",
        ),),
    ),
    "cub200": DatasetEntry(
        "id", 11_788, 200, "train+test", Reader("known_sets:cub200"), partners=_PARTNERS,
        home="https://www.vision.caltech.edu/datasets/cub_200_2011/",
        layout="CUB_200_2011/ with classes.txt, images.txt, image_class_labels.txt and images/",
        megabytes=1_151, licence="non-commercial research and education",
        cites=("wah2011caltech",),
        files=(Download(
            "https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz",
            "CUB_200_2011.tgz", "md5:97eceeb196236b17998738112f37df78", "CUB_200_2011",
        ),),
    ),
    "cars196": DatasetEntry(
        "id", 16_185, 196, "train+test", Reader("known_sets:cars196"), partners=_PARTNERS,
        home="a mirror: the official download is dead (github.com/pytorch/vision/issues/7545)",
        layout="stanford_cars/ with cars_train/*.jpg, cars_test/*.jpg, "
        "cars_test_annos_withlabels.mat, devkit/cars_meta.mat and devkit/cars_train_annos.mat",
        megabytes=1_954, licence="not stated",
        cites=("krause20133d",),
    ),
    "food101": DatasetEntry(
        "id", 25_250, 101, "test", Reader("known_sets:food101"), partners=_PARTNERS,
        home="https://data.vision.ee.ethz.ch/cvl/datasets_extra/food-101/",
        layout="food-101/ with meta/test.json and images/<class>/*.jpg",
        megabytes=4_996, licence="scientific fair use", downloads=True,
        cites=("bossard2014food",),
        files=(Download(
            "http://data.vision.ee.ethz.ch/cvl/food-101.tar.gz", "food-101.tar.gz",
            "md5:85eeb15f3717b99a5da872d97d918f87", "food-101",
        ),),
    ),
    "pets37": DatasetEntry(
        "id", 7_349, 37, "trainval+test", Reader("known_sets:pets37"), partners=_PARTNERS,
        home="https://www.robots.ox.ac.uk/~vgg/data/pets/",
        layout="oxford-iiit-pet/ with annotations/trainval.txt, annotations/test.txt and "
        "images/*.jpg",
        megabytes=811, licence="CC BY-SA 4.0", downloads=True,
        cites=("parkhi2012cats",),
        files=(
            Download(
                f"{_VGG}/pets/data/images.tar.gz", "oxford-iiit-pet/images.tar.gz",
                "md5:5c4f3ee8e5d25df40f4fd59a7f44e54c", "oxford-iiit-pet/images",
            ),
            Download(
                f"{_VGG}/pets/data/annotations.tar.gz", "oxford-iiit-pet/annotations.tar.gz",
                "md5:95a8c909bbe2e81eed6a22bccdf3f68f", "oxford-iiit-pet/annotations",
            ),
        ),
    ),
    "imagenet": DatasetEntry(
        "id", 50_000, 1_000, "val", Reader("imagenet:validation"),
        partners=_PARTNERS, extra_partners=("ninco",),
        home="https://www.image-net.org/download.php (after registration)",
        layout="imagenet/val/<wnid>/*.JPEG", megabytes=6_745, licence=_IMAGENET_TERMS,
        cites=("deng2009imagenet", "russakovsky2015imagenet"),
        packed=("imagenet/ILSVRC2012_img_val.tar", "imagenet/ILSVRC2012_devkit_t12.tar.gz"),
    ),
    "imagenet-sketch": DatasetEntry(  # the paper's ImageNet-K
        "id", 50_889, 1_000, "all",
        Reader("imagenet:by_wnid", places="sketch|ImageNet-Sketch.zip"),
        partners=_PARTNERS,
        home="https://github.com/HaohanWang/ImageNet-Sketch", layout="sketch/<wnid>/*.JPEG",
        licence="repository MIT; images not stated",
        cites=("wang2019learning",),
        packed=("ImageNet-Sketch.zip",),
        files=(Download(
            f"{_HUB}/songweig/imagenet_sketch/resolve/main/data/ImageNet-Sketch.zip",
            "ImageNet-Sketch.zip",
        ),),
    ),
    "imagenet-a": DatasetEntry(
        "id", 7_500, 200, "all",
        Reader("imagenet:by_wnid", places="imagenet-a", subset="a"),
        partners=_PARTNERS, home="https://github.com/hendrycks/natural-adv-examples",
        layout="imagenet-a/<wnid>/*.jpg", megabytes=688,
        licence="repository MIT; images not stated",
        cites=("hendrycks2021natural",),
        packed=("imagenet-a.tar",),
        files=(Download(
            f"{_BERKELEY}/imagenet-a.tar", "imagenet-a.tar", "md5:c3e55429088dc681f30d81f4726b6595"
        ),),
    ),
    "imagenet-v2": DatasetEntry(
        "id", 10_000, 1_000, "matched-frequency",
        Reader(
            "imagenet:by_number",  # its .tar.gz is a plain tar
            places="imagenetv2-matched-frequency-format-val|imagenetv2-matched-frequency.tar.gz",
        ),
        partners=_PARTNERS, home="https://github.com/modestyachts/ImageNetV2",
        layout="imagenetv2-matched-frequency-format-val/<0 to 999>/*.jpeg", megabytes=1_260,
        licence="repository MIT; images not stated",
        cites=("recht2019imagenet",),
        packed=("imagenetv2-matched-frequency.tar.gz",),
        files=(Download(
            f"{_HUB}/vaishaal/ImageNetV2/resolve/main/imagenetv2-matched-frequency.tar.gz",
            "imagenetv2-matched-frequency.tar.gz",
            "sha256:f0c37fdf925916b19ea1323cd9a2208cdb6959ba2c32eef2a7fc393835c9ca7c",
        ),),
    ),
    "imagenet-r": DatasetEntry(
        "id", 30_000, 200, "all",
        Reader("imagenet:by_wnid", places="imagenet-r", subset="r"),
        partners=_PARTNERS, home="https://github.com/hendrycks/imagenet-r",
        layout="imagenet-r/<wnid>/*.jpg", megabytes=2_190,
        licence="repository MIT; images not stated",
        cites=("hendrycks2021many",),
        packed=("imagenet-r.tar",),
        files=(Download(
            f"{_BERKELEY}/imagenet-r.tar", "imagenet-r.tar", "md5:a61312130a589d0ca1a8fca1f2bd3337"
        ),),
    ),
}  # fmt: skip

_OOD_SETS = {
    "svhn": DatasetEntry(
        "ood", 26_032, 10, "test", Reader("known_sets:svhn"),
        home="http://ufldl.stanford.edu/housenumbers/", layout="svhn/test_32x32.mat",
        megabytes=64, licence="non-commercial use", downloads=True,
        cites=("netzer2011reading",),
        files=(Download(
            "http://ufldl.stanford.edu/housenumbers/test_32x32.mat", "svhn/test_32x32.mat",
            "md5:eb5a983be6a315427106f1b164d9cef3",
        ),),
    ),
    "lsun": DatasetEntry(
        "ood", 10_000, 10, "test", Reader("known_sets:by_folder", places="lsun"),
        home="https://github.com/fyu/lsun (test_lmdb.zip, exported by its data.py)",
        layout="lsun/ with its exported images", licence="not stated",
        cites=("yu2015lsun",),
    ),
    "inaturalist": DatasetEntry(
        "ood", 10_000, 110, "subset of Huang & Li 2021",
        Reader("known_sets:by_folder", places="iNaturalist/images"),
        home=f"{_MOS_HOME}/iNaturalist.tar.gz", layout="iNaturalist/images/*.jpg",
        licence="not stated",
        cites=("van2018inaturalist", "huang2021mos"),
        files=(Download(
            f"{_MOS_HOME}/iNaturalist.tar.gz", "iNaturalist.tar.gz", unpacks="iNaturalist"
        ),),
    ),
    "sun": DatasetEntry(
        "ood", 10_000, 50, "subset of Huang & Li 2021",
        Reader("known_sets:by_folder", places="SUN/images"),
        home=f"{_MOS_HOME}/SUN.tar.gz", layout="SUN/images/*.jpg", licence="not stated",
        cites=("xiao2010sun", "huang2021mos"),
        files=(Download(
            f"{_MOS_HOME}/SUN.tar.gz", "SUN.tar.gz", unpacks="SUN"
        ),),
    ),
    "places": DatasetEntry(
        "ood", 10_000, 50, "subset of Huang & Li 2021",
        Reader("known_sets:by_folder", places="Places/images"),
        home=f"{_MOS_HOME}/Places.tar.gz", layout="Places/images/*.jpg", licence="not stated",
        cites=("zhou2017places", "huang2021mos"),
        files=(Download(
            f"{_MOS_HOME}/Places.tar.gz", "Places.tar.gz", unpacks="Places"
        ),),
    ),
    "texture": DatasetEntry(
        "ood", 5_640, 47, "all", Reader("known_sets:texture"),
        home="https://www.robots.ox.ac.uk/~vgg/data/dtd/", layout="dtd/dtd/images/<class>/*.jpg",
        megabytes=625, licence="research use", downloads=True,
        cites=("cimpoi2014describing",),
        files=(Download(
            f"{_VGG}/dtd/download/dtd-r1.0.1.tar.gz", "dtd/dtd-r1.0.1.tar.gz",
            "md5:fff73e5086ae6bdbea199a49dfb8a4c1", "dtd/dtd",
        ),),
    ),
    "ninco": DatasetEntry(
        "ood", 5_879, 64, "all", Reader(
            "known_sets:by_folder",
            places="NINCO/NINCO_OOD_classes|NINCO_OOD_classes|NINCO_all/NINCO_OOD_classes",
        ),
        home="https://zenodo.org/record/8013288 (NINCO_all.tar.gz)", megabytes=15_393,
        layout="NINCO/NINCO_OOD_classes/<class>/", licence="repository MIT; images not stated",
        cites=("bitterwolf2023or",), also_images=(5_878,),  # counted once as 5,879
        files=(Download(
            "https://zenodo.org/records/8013288/files/NINCO_all.tar.gz", "NINCO_all.tar.gz",
            "md5:b9ffae324363cd900a81ce3c367cd834", "NINCO/NINCO_OOD_classes",
        ),),
    ),
    "lsun-c": DatasetEntry(
        "ood", 10_000, 0, "test, crops of ODIN",
        Reader("known_sets:by_folder", places="LSUN/test|LSUN"),
        home=f"{_ODIN_HOME} (LSUN.tar.gz)", layout="LSUN/test/*.png", licence="not stated",
        files=(Download(
            f"{_DROPBOX}/fhtsw1m3qxlwj6h/LSUN.tar.gz", "LSUN.tar.gz",
            "md5:458a0a0ab8e5f1cb4516d7400568e460", "LSUN",
        ),),
        cites=("yu2015lsun", "liang2018enhancing"),
    ),
    "lsun-r": DatasetEntry(
        "ood", 10_000, 0, "test, resized by ODIN",
        Reader("known_sets:by_folder", places="LSUN_resize/LSUN_resize|LSUN_resize"),
        home=f"{_ODIN_HOME} (LSUN_resize.tar.gz)", layout="LSUN_resize/LSUN_resize/*.png",
        licence="not stated",
        files=(Download(
            f"{_DROPBOX}/moqh2wh8696c3yl/LSUN_resize.tar.gz", "LSUN_resize.tar.gz",
            "md5:278b7b31c8cb7e804a1465a8ce03a2dc", "LSUN_resize",
        ),),
        cites=("yu2015lsun", "liang2018enhancing"),
    ),
    "ssb-hard": DatasetEntry(
        "ood", 49_000, 980, "hard classes",
        Reader(
            "known_sets:openood", places="ssb_hard|images_largescale/ssb_hard",
            list_file="ssb_hard.txt",
        ),
        home=f"{_OPENOOD_HOME} (images_largescale/ssb_hard)", layout="ssb_hard/<wnid>/*.JPEG",
        licence=_IMAGENET_TERMS, cites=("vaze2022open", "zhang2023openood"),
    ),
    "openimage-o": DatasetEntry(
        "ood", 17_632, 0, "all",
        Reader(
            "known_sets:openood", places="openimage_o/images|images_largescale/openimage_o/images",
            list_file="openimage_o.txt",
        ),
        home="https://github.com/haoqiwang/vim", layout="openimage_o/images/*.jpg",
        licence="CC BY 2.0 (images of OpenImages)", cites=("wang2022vim", "zhang2023openood"),
        also_images=(15_869,),  # OpenOOD's test list, which leaves 1,763 to choose settings on
    ),
    "imagenet-o": DatasetEntry(
        "ood", 2_000, 200, "all",
        Reader("known_sets:by_folder", places="imagenet-o"),
        home="https://github.com/hendrycks/natural-adv-examples (imagenet-o.tar)",
        layout="imagenet-o/<wnid>/*.JPEG", licence="repository MIT; images not stated",
        cites=("hendrycks2021natural",),
        packed=("imagenet-o.tar",),
        files=(Download(
            f"{_BERKELEY}/imagenet-o.tar", "imagenet-o.tar", "md5:86bd7a50c1c4074fb18fc5f219d6d50b"
        ),),
    ),
}  # fmt: skip

_SHIFTED_SETS = {
    "cifar10-c": DatasetEntry(
        "shift", 10_000, 10, "test, corrupted",
        Reader("corruptions:cifar_c", path="CIFAR-10-C", classes="cifar10"),
        partners=("svhn",), home="https://zenodo.org/record/2535967",
        layout="CIFAR-10-C/ with labels.npy and <corruption>.npy", megabytes=2_918,
        licence="CC BY 4.0", parameters=SEVERITY,
        cites=("hendrycks2019benchmarking", "krizhevsky2009learning"),
        packed=("CIFAR-10-C.tar",),
        files=(Download(
            "https://zenodo.org/records/2535967/files/CIFAR-10-C.tar", "CIFAR-10-C.tar",
            "md5:56bf5dcef84df0e2308c6dcbcbbd8499",
        ),),
    ),
    "cifar100-c": DatasetEntry(
        "shift", 10_000, 100, "test, corrupted",
        Reader("corruptions:cifar_c", path="CIFAR-100-C", classes="cifar100"),
        partners=("svhn",), home="https://zenodo.org/record/3555552",
        layout="CIFAR-100-C/ with labels.npy and <corruption>.npy", megabytes=2_918,
        licence="CC BY 4.0", parameters=SEVERITY,
        cites=("hendrycks2019benchmarking", "krizhevsky2009learning"),
        packed=("CIFAR-100-C.tar",),
        files=(Download(
            "https://zenodo.org/records/3555552/files/CIFAR-100-C.tar", "CIFAR-100-C.tar",
            "md5:11f0ed0f1191edbf9fa23466ae6021d3",
        ),),
    ),
    "imagenet-c": DatasetEntry(
        "shift", 50_000, 1_000, "val, corrupted", Reader("corruptions:imagenet_c"),
        partners=("inaturalist",), home="https://zenodo.org/record/2235448",
        layout="imagenet-c/<corruption>/<severity>/<wnid>/*.JPEG", licence="CC BY 4.0",
        parameters=SEVERITY,
        cites=("hendrycks2019benchmarking",),
    ),
}  # fmt: skip

# CoOp's eleven, as the literature of prompts has them: test splits, names and prompts of its own,
# so "coop-pets" is not the paper's pets37.
_COOP_HOME = "https://github.com/KaiyangZhou/CoOp/blob/main/DATASETS.md"


def _of_coop(
    images: int, classes: int, read: Reader, layout: str, prompt: str, cited: str
) -> DatasetEntry:
    return DatasetEntry(
        "id", images, classes, "test split of CoOp", read, prompt, home=_COOP_HOME, layout=layout,
        licence="that of the original set", cites=(cited, "zhou2022learning"),
    )  # fmt: skip


def _by_split(
    images: int, classes: int, path: str, split: str, within: str, prompt: str, cited: str
) -> DatasetEntry:
    """A set with a file `split_zhou_<split>.json`, whose paths are those below a folder."""
    split = f"split_zhou_{split}.json"
    read = Reader("known_sets:coop", path=path, split=split, images=within)
    folder = f" and {within}/" * bool(within)
    return _of_coop(images, classes, read, f"{path}/ with {split}{folder}", prompt, cited)


_PHOTO = "a photo of a {}."
_COOP_SETS = {
    "coop-imagenet": _of_coop(
        50_000, 1_000, Reader("known_sets:coop_imagenet"),
        "imagenet/ with classnames.txt and images/val/<wnid>/*.JPEG", _PHOTO, "deng2009imagenet",
    ),
    "coop-caltech101": _by_split(
        2_465, 100, "caltech-101", "Caltech101", "101_ObjectCategories", _PHOTO,
        "li2022caltech",
    ),
    "coop-pets": _by_split(
        3_669, 37, "oxford_pets", "OxfordPets", "images", "a photo of a {}, a type of pet.",
        "parkhi2012cats",
    ),
    "coop-cars": _by_split(
        8_041, 196, "stanford_cars", "StanfordCars", "", _PHOTO, "krause20133d"
    ),
    "coop-flowers102": _by_split(
        2_463, 102, "oxford_flowers", "OxfordFlowers", "jpg", "a photo of a {}, a type of flower.",
        "nilsback2008automated",
    ),
    "coop-food101": _by_split(
        30_300, 101, "food-101", "Food101", "images", "a photo of {}, a type of food.",
        "bossard2014food",
    ),
    "coop-aircraft": _of_coop(
        3_333, 100, Reader("known_sets:aircraft"),
        "fgvc_aircraft/ with variants.txt, images_variant_test.txt and images/*.jpg",
        "a photo of a {}, a type of aircraft.", "maji2013fine",
    ),
    "coop-sun397": _by_split(
        19_850, 397, "sun397", "SUN397", "SUN397", _PHOTO, "xiao2010sun"
    ),
    "coop-dtd": _by_split(
        1_692, 47, "dtd", "DescribableTextures", "images", "{} texture.", "cimpoi2014describing"
    ),
    "coop-eurosat": _by_split(
        8_100, 10, "eurosat", "EuroSAT", "2750", "a centered satellite photo of {}.",
        "helber2019eurosat",
    ),
    "coop-ucf101": _by_split(
        3_783, 101, "ucf101", "UCF101", "UCF-101-midframes", "a photo of a person doing {}.",
        "soomro2012ucf101",
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

CATALOGUE: dict[str, DatasetEntry] = _ID_SETS | _OOD_SETS | _SHIFTED_SETS | _COOP_SETS | BUILTIN

ALIASES = {  # what people type, by the name here
    "cifar-10": "cifar10", "cifar-100": "cifar100",
    "cub": "cub200", "cub-200": "cub200", "cub200-2011": "cub200", "birds": "cub200",
    "cars": "cars196", "stanford-cars": "cars196",
    "food": "food101", "food-101": "food101",
    "pets": "pets37", "oxford-pets": "pets37", "oxford-iiit-pet": "pets37",
    "imagenet1k": "imagenet", "imagenet-1k": "imagenet", "in1k": "imagenet",
    "ilsvrc2012": "imagenet",
    "imagenet-k": "imagenet-sketch", "sketch": "imagenet-sketch",
    "imageneta": "imagenet-a", "imagenetr": "imagenet-r", "imageneto": "imagenet-o",
    "imagenetv2": "imagenet-v2",
    "dtd": "texture", "inat": "inaturalist", "inat21": "inaturalist",
    "sun397": "sun", "places365": "places",
    "aircraft": "coop-aircraft", "fgvc-aircraft": "coop-aircraft",
    "caltech101": "coop-caltech101", "caltech-101": "coop-caltech101",
    "flowers": "coop-flowers102", "flowers102": "coop-flowers102", "eurosat": "coop-eurosat",
    "ucf101": "coop-ucf101",
}  # fmt: skip


def _fault(line: object) -> str:
    """What keeps a value from being a line of CATALOGUE, in words."""
    is_entry = isinstance(line, DatasetEntry)
    return "" if is_entry else f"a {type(line).__name__} is no DatasetEntry"


plugins.watch("data set", CATALOGUE, _fault, "zsntta.datasets")
