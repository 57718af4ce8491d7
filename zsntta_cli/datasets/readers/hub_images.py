"""Images that the library `datasets` loads, of the hub or of a folder: `hf:ORG/NAME:SPLIT`.

An image column is told by its type. Rows lie on disk, and an image is decoded when it is asked for.
The library is an extra, and this the only module that knows it; it runs no code of a data set.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np

from zsntta_cli.datasets.images import ImageSet, StoredImages, numbered
from zsntta_cli.datasets.names import HF, HUB
from zsntta_cli.errors import DatasetError, first_line

_TIMEOUT = 10  # seconds until the hub counts as out of reach
_LABELS = ("label", "labels", "class", "class_name", "category", "target", "cls")  # usual names
_COLUMNS = ("image", "label")  # what may be named where there are several: ?image=A&label=B
_ROWS = 1_000  # whose sizes are looked at, at a time


@dataclass(frozen=True)
class Address:
    """What `hf:ORG/NAME@REVISION:CONFIG:SPLIT?image=COLUMN&label=COLUMN` says."""

    source: str  # a repository, or a folder of this machine
    split: str = ""
    config: str | None = None
    revision: str | None = None
    columns: dict[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, name: str, text: str) -> "Address":
        """An address as it is typed.

        Raises:
            DatasetError: it is none.
        """
        where, _, query = text.removeprefix(HF).partition("?")
        source, *splits = re.split(r":(?![^\[]*\])", where)  # not at that of test[:10%]
        columns = dict(parse_qsl(query))
        if not source or len(splits) > 2 or "" in splits or not set(columns) <= set(_COLUMNS):
            raise DatasetError(
                f"data set '{name}': {text} must be hf:ORG/NAME:SPLIT, or "
                f"hf:ORG/NAME@REVISION:CONFIG:SPLIT?image=COLUMN&label=COLUMN."
            )
        split = splits[-1] if splits else ""
        config = splits[0] if len(splits) > 1 else None
        if source.startswith("/"):
            return cls(source, split, config, None, columns)
        repository, _, revision = source.partition("@")
        return cls(repository, split, config, revision or None, columns)

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this machine."""
        return self.source.startswith("/")


def hub_images(name: str, address: Address) -> ImageSet:
    """The images of a split, with its labels, if it has a column of them.

    Raises:
        DatasetError: the library is not there, the set cannot be had, or it has no image column,
            or several.
    """
    library = find_spec("datasets")
    if library is None or library.origin is None:  # a folder of that name is there more often
        raise DatasetError(
            f"data set '{name}': the library datasets reads {HF}{address.source}: "
            f"pip install 'zsntta[datasets]'."
        )
    data, commit = _loaded(name, address)
    image = _image_column(name, address, data.features)
    labels, class_names = _labels(name, address, data)
    stored = HubImages(_undecoded(data, image), image, address.is_local)
    return ImageSet(
        name,
        stored,
        np.array(labels, np.int32),
        numbered(len(data)),
        class_names,
        fingerprint=",".join(map(str, stored.sizes())),
        reading=stored.reading(len(data)),
        facts={HUB: address.source + f"@{commit}" * _is_commit(commit)},
    )


@dataclass(frozen=True)
class HubImages(StoredImages):
    """Reads the image of row i: its bytes, or the file that the row names."""

    data: Any
    column: str
    is_local: bool

    def path(self, i: int) -> str:
        """The row."""
        return f"row {i}"

    def source(self, i: int) -> bytes | Path:
        """What is stored in a row, or where the file is that it names."""
        stored = self.data[i][self.column] or {}
        content: bytes | None = stored.get("bytes")
        return self._file(stored.get("path")) if content is None else content

    def sizes(self) -> Iterator[int]:
        """Bytes of all images, 0 where there is none; no image is read."""
        for table in self.data.with_format("arrow").iter(_ROWS):
            for chunk in table.column(self.column).chunks:
                for content, path in zip(chunk.field("bytes"), chunk.field("path"), strict=True):
                    yield content.as_buffer().size if content.is_valid else self._size(path.as_py())

    def _may_be_deep(self, _i: int) -> bool:
        return True  # no name tells

    def _size(self, path: str | None) -> int:
        try:
            return self._file(path).stat().st_size
        except OSError:
            return 0

    def _file(self, path: str | None) -> Path:
        """The file that a row names; a stranger's rows can name none but what was fetched."""
        file = Path(path or "").resolve()
        is_own = self.is_local or any(map(file.is_relative_to, _caches()))
        if not path or not is_own or not file.is_file():
            raise OSError("the row has no image")
        return file


def _caches() -> list[Path]:
    """The folders that the library fetches files into."""
    import datasets
    import huggingface_hub

    caches = datasets.config.HF_DATASETS_CACHE, huggingface_hub.constants.HF_HUB_CACHE
    return [Path(cache).resolve() for cache in caches]


def _loaded(name: str, address: Address) -> tuple[Any, str]:
    """The rows of a split, as the library has them, and the commit that they are of, if of one."""
    import datasets

    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    try:
        if address.is_local and _is_saved(Path(address.source)):
            return _saved_split(datasets.load_from_disk(address.source), address), ""
        if not address.split:
            raise ValueError("say which split, as :test behind it")
        if not address.is_local and Path(address.source).exists():  # the library takes that
            raise ValueError(f"it is a folder, too: {HF}./{address.source} reads that")
        with _offline_unless_reachable(address):
            return _prepared_split(address)
    except Exception as error:  # the library, and the hub below it, raise what they like
        raise DatasetError(
            f"data set '{name}': {HF}{address.source} cannot be loaded ({type(error).__name__}: "
            f"{first_line(error)})."
        ) from error


def _prepared_split(address: Address) -> tuple[Any, str]:
    """The rows of a split, fetched and prepared without the other splits, which may be large.

    What is so prepared lies apart: the library would take it for the whole.
    """
    import datasets

    splits = re.findall(r"(?:^|\+)([\w.]+)", address.split)  # of "train[:10%]+test"
    apart = Path(datasets.config.HF_DATASETS_CACHE) / "zsntta" / "+".join(splits)
    builder = datasets.load_dataset_builder(
        address.source, address.config, revision=address.revision, cache_dir=str(apart)
    )
    if _is_commit(address.revision or "") and builder.hash != address.revision:
        raise ValueError(f"fetched is {builder.hash} alone")  # without a hub, the last one is had
    if files := builder.config.data_files:
        if missing := [split for split in splits if split not in files]:
            raise ValueError(f"it has the splits {', '.join(map(str, files))}, not {missing[0]}")
        builder.config.data_files = type(files)({split: files[split] for split in splits})
    builder.info.download_size = builder.info.dataset_size = builder.info.size_in_bytes = None
    builder.download_and_prepare(verification_mode="no_checks")
    return builder.as_dataset(split=address.split), builder.hash or ""


def _is_commit(text: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{40}", text) is not None


def _is_saved(folder: Path) -> bool:
    """Whether a folder was written by `save_to_disk`."""
    return any((folder / file).is_file() for file in ("state.json", "dataset_dict.json"))


def _saved_split(saved: Any, address: Address) -> Any:
    splits = dict(saved) if isinstance(saved, dict) else {str(saved.split or ""): saved, "": saved}
    if address.split not in splits:
        has = ", ".join(filter(None, splits)) or "none"
        raise ValueError(f"must be one of its splits ({has}), not '{address.split}'")
    return splits[address.split]


@contextmanager
def _offline_unless_reachable(address: Address) -> Iterator[None]:
    """Have the library look into its cache alone, at once, where the hub does not answer."""
    import datasets
    import huggingface_hub

    if address.is_local:
        yield
        return
    was_offline, refused = datasets.config.HF_HUB_OFFLINE, None
    try:
        huggingface_hub.HfApi().dataset_info(
            address.source, revision=address.revision, timeout=_TIMEOUT
        )
    except Exception as error:  # whatever it asks through raises
        datasets.config.HF_HUB_OFFLINE, refused = True, error
    try:
        yield
    except Exception as error:
        raise refused or error from error
    finally:
        datasets.config.HF_HUB_OFFLINE = was_offline


def _image_column(name: str, address: Address, features: Any) -> str:
    import datasets

    columns = [column for column, kind in features.items() if isinstance(kind, datasets.Image)]
    wanted = address.columns.get("image")
    chosen = [column for column in columns if wanted in (None, column)]
    if len(chosen) == 1:
        return chosen[0]
    if not columns:
        raise DatasetError(
            f"data set '{name}': {HF}{address.source} has no column of images: its columns are "
            f"{', '.join(features)}."
        )
    raise _ambiguous(name, address, "image", columns)


def _ambiguous(name: str, address: Address, what: str, columns: Sequence[str]) -> DatasetError:
    wanted = address.columns.get(what)
    return DatasetError(
        f"data set '{name}': {HF}{address.source} has the {what} columns "
        f"{', '.join(columns) or '(none)'}{f', not {wanted}' if wanted else ''}: name one of them "
        f"at the end, as ?{what}={columns[0] if columns else 'COLUMN'}."
    )


def _undecoded(data: Any, column: str) -> Any:
    """The rows with their images alone, as bytes or paths."""
    import datasets

    return data.select_columns([column]).cast_column(column, datasets.Image(decode=False))


def _labels(name: str, address: Address, data: Any) -> tuple[list[int], list[str]]:
    """Labels, -1 where there is none, and the names of classes; of a column of texts, sorted."""
    column = _label_column(name, address, data.features)
    if not column:
        return [-1] * len(data), []
    values = data.select_columns([column]).with_format(None)[:][column]
    class_names = list(getattr(data.features[column], "names", ()))
    if any(isinstance(value, str) for value in values):
        class_names = sorted({value for value in values if value is not None})
        index = {text: i for i, text in enumerate(class_names)}
        values = [index.get(value) for value in values]
    labels = [-1 if value is None else int(value) for value in values]
    highest = max(labels, default=-1)
    if min(labels, default=-1) < -1 or (class_names and highest >= len(class_names)):
        raise DatasetError(
            f"data set '{name}': labels in the column {column} run from {min(labels)} to "
            f"{highest}, but there are {len(class_names)} class names."
        )
    return labels, class_names if highest >= 0 else []


def _label_column(name: str, address: Address, features: Any) -> str:
    """The column of labels: one of ClassLabels, or of a usual name; nothing where there is none."""
    import datasets

    of_classes = [c for c, kind in features.items() if isinstance(kind, datasets.ClassLabel)]
    usual = [c for c in _LABELS if c in features and _tells_labels(features[c])]
    if wanted := address.columns.get("label"):
        every = [c for c in features if c in of_classes or _tells_labels(features[c])]
        if wanted not in every:
            raise _ambiguous(name, address, "label", every)
        return wanted
    if len(of_classes) > 1:
        raise _ambiguous(name, address, "label", of_classes)
    return next(iter(of_classes or usual), "")


def _tells_labels(kind: Any) -> bool:
    dtype = str(getattr(kind, "dtype", ""))
    return dtype in ("string", "large_string") or dtype.startswith(("int", "uint"))
