"""Image sets of the hub: what the library `datasets` loads, and CLIP_benchmark's web data sets.

`hf:ORG/NAME:SPLIT` is of the hub or of a folder. An image column is told by its type, or
else has files as bytes; rows lie on disk, and an image is decoded when it is asked for. The library
is an extra, and this the only module that knows it; it runs no code of a data set.
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from zsntta_cli.datasets import shards
from zsntta_cli.datasets.images import ImageSet, file_set, numbered
from zsntta_cli.datasets.names import HF, HUB
from zsntta_cli.datasets.tree import File
from zsntta_cli.errors import DatasetError, first_line

_LABELS = ("label", "labels", "class", "class_name", "category", "target", "cls")  # usual names
_ROWS = 1_000  # whose sizes are looked at, at a time
_TIMEOUT = 10  # seconds until the hub counts as out of reach


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
        if not source or len(splits) > 2 or "" in splits or not set(columns) <= {"image", "label"}:
            raise DatasetError(
                f"data set '{name}': {text} must be hf:ORG/NAME:SPLIT, or "
                f"hf:ORG/NAME@REVISION:CONFIG:SPLIT?image=COLUMN&label=COLUMN."
            )
        *configs, split = splits or [""]
        config = configs[0] if configs else None
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
    import datasets

    rows, commit = _loaded(name, address)
    kinds = rows.features
    images = [column for column, kind in kinds.items() if isinstance(kind, datasets.Image)]
    images = images or [column for column, kind in kinds.items() if _may_hold_images(kind)]
    if (image := _one(name, address, "image", images)) is None:
        raise DatasetError(
            f"data set '{name}': {HF}{address.source} has no column of images: its columns are "
            f"{', '.join(kinds)}."
        )
    typed = [column for column in kinds if isinstance(kinds[column], datasets.ClassLabel)]
    others = [column for column in kinds if column not in typed and _tells_labels(kinds[column])]
    if "label" in address.columns:
        columns = [*typed, *others]
    else:
        columns = typed or [column for column in _LABELS if column in others][:1]
    label = _one(name, address, "label", columns)
    labels, class_names = _labels(rows, label) if label else ([-1] * len(rows), [])
    stored = rows.select_columns([image]).cast_column(image, datasets.Image(decode=False))
    sizes = _sizes(stored, image, address.is_local)
    files = [  # as .png, which may have more than 8 bits: no name tells
        File((f"{i}.png",), size, partial(_content, stored, i, image, address.is_local))
        for i, size in enumerate(sizes)
    ]
    facts = {HUB: address.source + f"@{commit}" * _is_commit(commit)}
    found = file_set(name, files, labels, class_names)
    notes = _unused(name, kinds, label) if max(labels, default=-1) < 0 else []
    return replace(found, sample_ids=numbered(len(files)), facts=facts, notes=notes)


def _unused(name: str, kinds: Any, label: str | None) -> list[str]:
    """Notes on columns that are called as labels are, and give none."""
    why = {
        column: "has no label in any row"
        if column == label
        else "has neither numbers, texts nor class labels"
        for column in kinds
        if column == label or column.lower() in _LABELS
    }
    return [f"{name}: the column '{column}' {text}" for column, text in why.items()]


def _loaded(name: str, address: Address) -> tuple[Any, str]:
    """The rows of a split, as the library has them, and the commit that they are of, if of one."""
    import datasets

    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    try:
        folder = Path(address.source)
        if any((folder / file).is_file() for file in ("state.json", "dataset_dict.json")):
            saved = datasets.load_from_disk(address.source)
            splits = (
                dict(saved) if isinstance(saved, dict) else {"": saved, str(saved.split): saved}
            )
            if address.split not in splits:
                has = ", ".join(filter(None, splits))
                raise ValueError(f"must be one of its splits ({has}), not '{address.split}'")
            return splits[address.split], ""
        if not address.split:
            raise ValueError("say which split, as :test behind it")
        if not address.is_local and folder.exists():  # the library takes that
            raise ValueError(f"it is a folder, too: {HF}./{address.source} reads that")
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


def _one(name: str, address: Address, what: str, columns: Sequence[str]) -> str | None:
    """The column that is wanted, or the only one; None where there is none.

    Raises:
        DatasetError: there are several, or not the one that is wanted.
    """
    wanted = address.columns.get(what)
    chosen = [column for column in columns if wanted in (None, column)]
    if len(chosen) > 1 or (wanted and not chosen):
        raise DatasetError(
            f"data set '{name}': {HF}{address.source} has the {what} columns "
            f"{', '.join(columns) or '(none)'}{f', not {wanted}' if wanted else ''}: name one of "
            f"them at the end, as ?{what}={columns[0] if columns else 'COLUMN'}."
        )
    return chosen[0] if chosen else None


def _may_hold_images(kind: Any) -> bool:
    """Whether a column has files as pandas and polars write them: bytes, or {bytes, path}."""
    if isinstance(kind, dict):
        return {"bytes"} <= {*kind} <= {"bytes", "path"} and _may_hold_images(kind["bytes"])
    return getattr(kind, "dtype", "") in ("binary", "large_binary")


def _tells_labels(kind: Any) -> bool:
    dtype = str(getattr(kind, "dtype", ""))
    return dtype in ("string", "large_string") or dtype.startswith(("int", "uint"))


def _labels(rows: Any, column: str) -> tuple[list[int], list[str]]:
    """Labels, -1 where there is none, and the names of classes; of a column of texts, sorted."""
    values = rows.select_columns([column]).with_format(None)[:][column]
    class_names = list(getattr(rows.features[column], "names", ()))
    if any(isinstance(value, str) for value in values):
        class_names = sorted({value for value in values if value is not None})
        index = {text: i for i, text in enumerate(class_names)}
        values = [index.get(value) for value in values]
    labels = [-1 if value is None else int(value) for value in values]
    return labels, class_names if max(labels, default=-1) >= 0 else []


def _sizes(stored: Any, column: str, is_local: bool) -> list[int]:
    """Bytes of all images, 0 where there is none; no image is read."""
    sizes = list[int]()
    for table in stored.with_format("arrow").iter(_ROWS):
        for chunk in table.column(column).chunks:
            for content, path in zip(chunk.field("bytes"), chunk.field("path"), strict=True):
                try:
                    own = content.as_buffer().size if content.is_valid else None
                    file = path.as_py()
                    sizes.append(_file(file, is_local).stat().st_size if own is None else own)
                except OSError:
                    sizes.append(0)
    return sizes


def _content(stored: Any, i: int, column: str, is_local: bool) -> bytes:
    """The image of row i: its bytes, or those of the file that the row names."""
    row = stored[i][column] or {}
    content: bytes | None = row.get("bytes")
    return _file(row.get("path"), is_local).read_bytes() if content is None else content


def _file(path: str | None, is_local: bool) -> Path:
    """The file that a row names; a stranger's rows can name none but what was fetched."""
    import datasets
    import huggingface_hub

    caches = datasets.config.HF_DATASETS_CACHE, huggingface_hub.constants.HF_HUB_CACHE
    file = Path(path or "").resolve()
    is_own = is_local or any(file.is_relative_to(Path(cache).resolve()) for cache in caches)
    if not path or not is_own or not file.is_file():
        raise OSError("the row has no image")
    return file


# --- Web data sets ---


def web_repository(name: str, repository: str, data_root: Path) -> ImageSet:
    """The images of a data set repository of the hub, which is fetched into the data root once.

    Raises:
        DatasetError: it is not there and cannot be fetched.
    """
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]

    root = data_root / repository
    try:
        tars = shards.shard_paths(name, root)
    except DatasetError:
        tars = []
    if not tars:
        if not sys.stderr.isatty():
            disable_progress_bars()
        try:  # of one revision; the texts come first, the shards last
            info = HfApi().dataset_info(repository, timeout=_TIMEOUT)
            for patterns in (
                [shards.NAMES, shards.TEMPLATES, f"{shards.SPLIT}/{shards.COUNT}"],
                [f"{shards.SPLIT}/*.tar"],
            ):
                snapshot_download(
                    repository, repo_type="dataset", revision=info.sha, local_dir=root,
                    allow_patterns=patterns,
                )  # fmt: skip
        except Exception as error:  # the hub and what it asks through raise what they like
            raise DatasetError(
                f"data set '{name}': https://huggingface.co/datasets/{repository} is not whole in "
                f"{root} and cannot be fetched ({type(error).__name__}: {first_line(error)})."
            ) from error
        tars = shards.shard_paths(name, root)
    if not tars:
        raise DatasetError(
            f"data set '{name}': https://huggingface.co/datasets/{repository} has no "
            f"{shards.SPLIT}/{shards.COUNT}: it is no web data set of CLIP_benchmark's layout."
        )
    images = shards.web_dataset(name, tars)
    return replace(images, facts={**images.facts, HUB: repository + _fetched_revision(root)})


def _fetched_revision(root: Path) -> str:
    """`@` and the commit that was fetched, as the hub's library notes it; nothing if by others."""
    note = root / ".cache" / "huggingface" / "download" / shards.SPLIT / f"{shards.COUNT}.metadata"
    lines = note.read_text().splitlines() if note.is_file() else []
    return f"@{lines[0]}" if lines else ""
