"""The catalogue: one entry for each data set, from `known_sets.json` beside this file.

A new set is a row there, with a function that reads it if none of `known_sets.py` does. Readers are
imported only when one of their sets is read.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zsntta_cli import plugins
from zsntta_cli.settings.prompts import DEFAULT_PROMPT

if TYPE_CHECKING:
    from zsntta_cli.datasets.images import ImageSet

ARCHIVES = (".tar", ".zip")  # that are read in place
CORRUPTIONS = (  # the 15 that results on corrupted sets average over, arXiv:1903.12261
    "gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur",
    "zoom_blur", "snow", "frost", "fog", "brightness", "contrast", "elastic_transform",
    "pixelate", "jpeg_compression",
)  # fmt: skip


def first_place(root: Path, places: Sequence[str]) -> Path | None:
    """The first place that exists and is not empty; else an archive of a top folder of them."""
    tops = [place.partition("/")[0] for place in places]
    archives = [f"{top}{ending}" for top in tops for ending in ARCHIVES if top]
    paths = (root / place for place in (*places, *archives) if place)
    return next((p for p in paths if p.is_file() or (p.is_dir() and any(p.iterdir()))), None)


@dataclass(frozen=True)
class Reader:
    """A function of this package, imported when it is called."""

    where: str  # "module:function"
    values: Mapping[str, Any]  # what it takes by name

    def __call__(self, name: str, root: Path) -> "ImageSet":
        """The images of a set, by its name, below the data root."""
        module, _, function = self.where.partition(":")
        read = getattr(import_module(f"zsntta_cli.datasets.{module}"), function)
        images: ImageSet = read(name, root, **self.values)
        return images


@dataclass(frozen=True)
class Download:
    """A file from which a set, or a part of it, is fetched."""

    address: str
    checksum: str = ""  # "md5:…" or "sha256:…", if one is published
    unpacks: str = ""  # the folder below the data root that it is unpacked to; else it is read
    below: str = ""  # the folder below the data root that it is put into

    @property
    def file(self) -> str:
        """Its path below the data root."""
        return f"{self.below}/{self.address.rpartition('/')[2]}".lstrip("/")


@dataclass(frozen=True)
class DatasetEntry:
    """A known data set."""

    role: str  # "id", whose class names are embedded; "ood"; "both"; "shift", a corrupted ID set
    images: int
    classes: int  # in the original; a flat folder has no labels
    split: str
    read: "Callable[[str, Path], ImageSet]"  # by name, from the data root
    prompt: str = DEFAULT_PROMPT
    partners: tuple[str, ...] = ()  # OOD sets that the paper (or the demo) pairs it with
    home: str = ""  # where to get it
    layout: str = ""  # files or folders expected under the data root; empty for a built-in set
    megabytes: int = 0  # of the download
    licence: str = ""  # its terms, in short
    downloads: bool = False  # whether it is fetched if it is not on disk
    extra_partners: tuple[str, ...] = ()  # OOD sets of the paper's further experiments
    parameters: str = ""  # what follows the name
    also_images: tuple[int, ...] = ()  # other counts that a complete set may have
    cites: tuple[str, ...] = ()  # keys of report/references.bib
    places: tuple[str, ...] = ()  # where it is searched, if there are several or not the layout's
    archives: tuple[str, ...] = ()  # that are read in place, instead of the layout
    files: tuple[Download, ...] = ()  # what `datasets get` fetches

    @property
    def packed(self) -> tuple[str, ...]:
        """All archives that are read in place, including fetched ones that are not unpacked."""
        stay = [file.file for file in self.files if not file.unpacks]
        return (*self.archives, *(file for file in stay if file != self.layout))

    def place(self, root: Path) -> Path | None:
        """The first existing path of the set below the data root; None if there is none."""
        folder, *_ = re.split(r" with |/?[<*]|/$", self.layout)
        files = (*self.packed, *(file.unpacks or file.file for file in self.files))
        return first_place(root, (*self.places, folder)) or first_place(root, files)

    def is_there(self, root: Path) -> bool:
        """Whether it is built in, or a path of it exists below the data root."""
        return not self.layout or self.place(root) is not None


def _fault(line: object) -> str:
    """Why a value cannot be an entry of CATALOGUE, in words."""
    is_entry = isinstance(line, DatasetEntry)
    return "" if is_entry else f"a {type(line).__name__} is not a DatasetEntry"


def _entry_of(row: dict[str, Any]) -> DatasetEntry:
    """The entry that a row of `known_sets.json` describes."""
    for key, value in row.items():
        row[key] = tuple(value) if isinstance(value, list) else value
    values = {**row.pop("with", {}), **({"places": row["places"]} if "places" in row else {})}
    files = tuple(Download(**file) for file in row.pop("files", ()))
    return DatasetEntry(read=Reader(row.pop("read"), values), files=files, **row)


ALIASES: dict[str, str] = {}  # the name here, by what people type
CATALOGUE: dict[str, DatasetEntry] = {}
BUILTIN: dict[str, DatasetEntry] = {}
_rows = json.loads(Path(__file__).with_name("known_sets.json").read_text(encoding="utf-8"))
for _name, _row in _rows.items():
    ALIASES.update(dict.fromkeys(_row.pop("aliases", ()), _name))
    CATALOGUE[_name] = _entry_of(_row)
    if not CATALOGUE[_name].layout:
        BUILTIN[_name] = CATALOGUE[_name]

plugins.watch("data set", CATALOGUE, _fault, "zsntta.datasets")
