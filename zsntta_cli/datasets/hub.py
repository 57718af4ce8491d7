"""Image sets from the hub: what the library `datasets` loads, and CLIP_benchmark's web data sets.

`hf:ORG/NAME@REVISION:CONFIG:SPLIT?image=COLUMN&label=COLUMN` names a set on the hub or in a local
folder. Rows stay on disk, and an image is decoded when it is requested. The library is an extra
that only this module uses; it runs no code of a data set.
"""

import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from zsntta_cli.datasets import shards
from zsntta_cli.datasets.class_names import class_labels
from zsntta_cli.datasets.images import ImageSet, file_set, numbered
from zsntta_cli.datasets.names import HF, HUB
from zsntta_cli.datasets.tree import File
from zsntta_cli.errors import DatasetError, first_line

_ADDRESS = re.compile(
    r"(/[^:?]+|[^@:?]+)(?:@([^:?]+))?(?::([^:?]+))??(?::((?:[^:?\[]|\[[^\]]*\])+))?(?:\?(.*))?"
)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_LABELS = ("label", "labels", "class", "class_name", "category", "target", "cls")  # usual names
_TELLS = re.compile(r"u?int\d+|(large_)?string")  # types of columns that may tell labels
_ROWS = 1_000  # rows of which sizes are read at a time
_TIMEOUT = 10  # seconds until the hub counts as out of reach


def hub_images(name: str, address: str) -> ImageSet:
    """The images of a split, with labels of its class column, a usual one, or a requested one.

    Without an image column, a column of files as bytes is used, as pandas and polars write them.

    Raises:
        DatasetError: the library is not installed, the set is not available, or it has no image
            column or several.
    """
    parts = _ADDRESS.fullmatch(address.removeprefix(HF))
    asked = dict(parse_qsl(parts[5] or "")) if parts else {}
    if not parts or not asked.keys() <= {"image", "label"}:
        whole = "hf:ORG/NAME@REVISION:CONFIG:SPLIT?image=COLUMN&label=COLUMN"
        raise DatasetError(f"{address} must be hf:ORG/NAME:SPLIT, or {whole}.")
    source, where = parts[1], f"{HF}{parts[1]}"
    library = find_spec("datasets")
    if library is None or library.origin is None:  # no origin: just a folder of that name
        raise DatasetError(f"{where} needs the library datasets: pip install 'zsntta[datasets]'.")
    import datasets

    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    try:
        rows, commit = _rows(source, *parts.groups()[1:4])
    except Exception as error:  # the library, and the hub below it, raise errors of any kind
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise DatasetError(f"{where} cannot be loaded ({reason}).") from error
    kinds: Mapping[str, Any] = rows.features
    image, label = _columns(name, where, kinds, asked)
    raw = rows.with_format(None)[label][:] if label else [None] * len(rows)
    labels, class_names = class_labels(source, raw, getattr(kinds.get(label or ""), "names", ()))
    stored = rows.select_columns([image]).cast_column(image, datasets.Image(decode=False))
    images = [  # named .png, because they may have more than 8 bits
        File((f"{i}.png",), size, partial(_content, stored, i, image))
        for i, size in enumerate(_sizes(stored, image))
    ]
    notes = list[str]()
    if max(labels, default=-1) < 0 and len(kinds) > 1:
        unused = [c for c in _LABELS if c in kinds and c != label]
        notes = [f"the column '{c}' has neither numbers, texts nor classes" for c in unused]
        notes += [f"the column '{label}' has no label in any row"] if label else []
        notes.append(f"no labels: append ?label=COLUMN to use a column of {', '.join(kinds)}")
    facts = {HUB: f"{source}@{commit}" if _COMMIT.fullmatch(commit) else source}
    ids = numbered(len(images))
    return file_set(name, images, labels, class_names, sample_ids=ids, facts=facts, notes=notes)


def _columns(
    name: str, where: str, kinds: Mapping[str, Any], asked: Mapping[str, str]
) -> tuple[str, str | None]:
    """The columns of images and labels: the requested ones, or the only ones of their types."""
    import datasets

    pictures = [c for c, kind in kinds.items() if isinstance(kind, datasets.Image)]
    files = [c for c, kind in kinds.items() if _may_hold_images(kind)]
    classes = [c for c, kind in kinds.items() if isinstance(kind, datasets.ClassLabel)]
    usual = [c for c in _LABELS if _TELLS.fullmatch(str(getattr(kinds.get(c), "dtype", "")))]
    if not pictures and not files:
        raise DatasetError(
            f"{where} has no column of images, or of image files as bytes: its columns are "
            f"{', '.join(kinds)}. For paths of images use a list, {name}=LIST.csv."
        )
    fitting = {"image": pictures or files, "label": classes or usual[:1]}
    possible = {"image": {*pictures, *files}, "label": {*kinds}}
    for what in ("image", "label"):
        columns = fitting[what]
        chosen = [asked[what]] if what in asked else columns
        if len(chosen) > 1 or not possible[what] >= {*chosen}:
            raise DatasetError(
                f"{where} has the {what} columns {', '.join(columns) or '(none)'}, of "
                f"{', '.join(kinds)}: append one, as in ?{what}={[*columns, 'COLUMN'][0]}."
            )
        fitting[what] = chosen
    return fitting["image"][0], next(iter(fitting["label"]), None)


def _rows(
    source: str, revision: str | None, config: str | None, split: str | None
) -> tuple[Any, str]:
    """The rows of a split as the library gives them, and their commit if there is one.

    The split is fetched and prepared without the other splits, which may be large, and stored in a
    separate cache: the library would take it for the complete set.
    """
    import datasets

    if any(Path(source, file).is_file() for file in ("state.json", "dataset_dict.json")):
        saved = datasets.load_from_disk(source)
        splits = dict(saved) if isinstance(saved, dict) else {None: saved, str(saved.split): saved}
        return splits[split], ""
    if not split:
        raise ValueError("append a split, such as :test")
    wanted = re.findall(r"(?:^|\+)([\w.]+)", split)  # of "train[:10%]+test"
    apart = Path(datasets.config.HF_DATASETS_CACHE) / "zsntta" / "+".join(wanted)
    builder = datasets.load_dataset_builder(source, config, revision=revision, cache_dir=str(apart))
    # Without the hub, the library gives the last revision that it fetched.
    if _COMMIT.fullmatch(revision or "") and builder.hash != revision:
        raise ValueError(f"only {builder.hash} is available")
    if files := builder.config.data_files:
        if missing := [part for part in wanted if part not in files]:
            raise ValueError(f"it has the splits {', '.join(map(str, files))}, not {missing[0]}")
        builder.config.data_files = type(files)({part: files[part] for part in wanted})
    builder.info.download_size = builder.info.dataset_size = builder.info.size_in_bytes = None
    builder.download_and_prepare(verification_mode="no_checks")
    return builder.as_dataset(split=split), builder.hash or ""


def _may_hold_images(kind: Any) -> bool:
    """Whether a column has files: bytes, or {bytes, path}."""
    if isinstance(kind, dict):
        return {"bytes"} <= {*kind} <= {"bytes", "path"} and _may_hold_images(kind["bytes"])
    return getattr(kind, "dtype", "") in ("binary", "large_binary")


def _sizes(stored: Any, column: str) -> list[int]:
    """The sizes of all images in bytes, 0 if there is none; no image is read."""
    sizes = list[int]()
    for table in stored.with_format("arrow").iter(_ROWS):
        pictures = table.column(column).combine_chunks()
        for content, path in zip(pictures.field("bytes"), pictures.field("path"), strict=True):
            file = Path(path.as_py() or "")
            size = content.as_buffer().size if content.is_valid else 0
            sizes.append(size or (file.stat().st_size if file.is_file() else 0))
    return sizes


def _content(stored: Any, i: int, column: str) -> bytes:
    """The image of row i: its bytes, or those of the file that the row names."""
    row = stored[i][column] or {}
    if (content := row.get("bytes")) is not None:
        return bytes(content)
    if not row.get("path"):
        raise OSError("the row has no image")
    return Path(row["path"]).read_bytes()


def web_repository(name: str, repository: str, data_root: Path) -> ImageSet:
    """The images of a web data set's repository, which is fetched into the data root once.

    Raises:
        DatasetError: it is missing and cannot be fetched.
    """
    root, where = data_root / repository, f"https://huggingface.co/datasets/{repository}"
    count = f"{shards.SPLIT}/{shards.COUNT}"
    try:
        tars = shards.shard_paths(root)
    except DatasetError:  # some or all of them are missing
        tars = []
    if not tars:
        try:
            _fetch(repository, root, [shards.NAMES, shards.TEMPLATES, count])
        except Exception as error:  # the hub and what it asks through raise errors of any kind
            reason = f"cannot be fetched ({type(error).__name__}: {first_line(error)})"
            raise DatasetError(f"{where} is incomplete in {root} and {reason}.") from error
        tars = shards.shard_paths(root)
    if not tars:
        reason = "it is not a web data set in CLIP_benchmark's layout"
        raise DatasetError(f"{where} has no {count}: {reason}.")
    images = shards.web_dataset(name, tars)
    # huggingface_hub notes the commit; without its note, the commit is unknown.
    note = root / f".cache/huggingface/download/{count}.metadata"
    commit = f"@{note.read_text().split()[0]}" if note.is_file() else ""
    return replace(images, facts={**images.facts, HUB: repository + commit})


def _fetch(repository: str, root: Path, texts: list[str]) -> None:
    """Fetch the texts of a repository, then its shards, so that it is complete if they are."""
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]

    if not sys.stderr.isatty():
        disable_progress_bars()
    commit = HfApi().dataset_info(repository, timeout=_TIMEOUT).sha
    for files in (texts, f"{shards.SPLIT}/*.tar"):
        snapshot_download(
            repository, repo_type="dataset", revision=commit, local_dir=root, allow_patterns=files
        )
