"""Web data sets as CLIP_benchmark lays them out, in a folder or on the hub.

ROOT has classnames.txt and prompt templates; ROOT/SPLIT has nshards.txt, a number, and the shards
0.tar, 1.tar …
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from zsntta_cli.datasets.names import HUB
from zsntta_cli.datasets.readers.shards import NAMES, TEMPLATES, images_of_shards
from zsntta_cli.errors import DatasetError, first_line
from zsntta_cli.files import read_input

if TYPE_CHECKING:
    from zsntta_cli.datasets.images import ImageSet

_COUNT, _SPLIT = "nshards.txt", "test"
_TIMEOUT = 10  # seconds until the hub counts as out of reach
_MOST = 1_000_000  # shards


def split_folder(name: str, path: Path) -> Path | None:
    """The folder of shards that a path is or, as its split `test`, has; None of another folder.

    Raises:
        DatasetError: it has other splits alone.
    """
    if not path.is_dir():
        return None
    if (path / _COUNT).is_file():
        return path
    if (path / _SPLIT / _COUNT).is_file():
        return path / _SPLIT
    if splits := sorted(file.parent.name for file in path.glob(f"*/{_COUNT}")):
        raise DatasetError(
            f"data set '{name}': {path} has no split {_SPLIT}, but {', '.join(splits)}: name one, "
            f"as {name}={path / splits[0]}."
        )
    return None


def web_dataset(name: str, split: Path, label: str = "") -> "ImageSet":
    """The images of a split: a folder of as many shards as it says; `label` as of all shards.

    Raises:
        DatasetError: there are fewer shards, or more.
    """
    shards = shard_paths(name, split)
    if missing := [shard.name for shard in shards if not shard.is_file()]:
        raise DatasetError(
            f"data set '{name}': {split} should have {len(shards):,} shards, and {len(missing):,} "
            f"are missing, such as {missing[0]}: get them again."
        )
    if (more := split / f"{len(shards)}.tar").exists():
        raise DatasetError(
            f"data set '{name}': {split / _COUNT} says {len(shards):,} shards, but there is "
            f"{more.name}: remove what is not of the set."
        )
    return images_of_shards(name, shards, split / "*.tar", label)


def shard_paths(name: str, split: Path) -> list[Path]:
    """The shards that a split should have."""
    try:
        count = int(read_input(split / _COUNT, 100))
        if not 0 < count <= _MOST:
            raise ValueError(f"{count:,} shards")
    except (OSError, ValueError) as error:
        reason = first_line(error)
        raise DatasetError(
            f"data set '{name}': {split / _COUNT} must have the number of shards ({reason})."
        ) from error
    return [split / f"{i}.tar" for i in range(count)]


def from_hub(name: str, repository: str, data_root: Path) -> "ImageSet":
    """The images of a data set repository of the hub, which is fetched into the data root once.

    Raises:
        DatasetError: it is not there and cannot be fetched.
    """
    root = data_root / repository
    if not _is_whole(name, root):
        _fetch(name, repository, root)
    images = web_dataset(name, root / _SPLIT)
    return replace(images, facts={**images.facts, HUB: repository + _revision(root)})


def is_fetched(repository: str, data_root: Path) -> bool:
    """Whether all of a data set repository is in the data root."""
    root = data_root / repository
    return _is_whole(root.name, root)


def _is_whole(name: str, root: Path) -> bool:
    split = root / _SPLIT
    return (split / _COUNT).is_file() and all(path.is_file() for path in shard_paths(name, split))


def _fetch(name: str, repository: str, root: Path) -> None:
    """Fetch what lacks of a repository, of one revision; the texts come first, the shards last."""
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]

    if not sys.stderr.isatty():
        disable_progress_bars()
    try:
        info = HfApi().dataset_info(repository, timeout=_TIMEOUT)
        for patterns in ([NAMES, TEMPLATES, f"{_SPLIT}/{_COUNT}"], [f"{_SPLIT}/*.tar"]):
            snapshot_download(
                repository, repo_type="dataset", revision=info.sha, local_dir=root,
                allow_patterns=patterns,
            )  # fmt: skip
    except Exception as error:  # the hub and what it asks through raise what they like
        raise DatasetError(
            f"data set '{name}': https://huggingface.co/datasets/{repository} is not whole in "
            f"{root} and cannot be fetched ({type(error).__name__}: {first_line(error)})."
        ) from error
    if not (root / _SPLIT / _COUNT).is_file():
        raise DatasetError(
            f"data set '{name}': https://huggingface.co/datasets/{repository} has no "
            f"{_SPLIT}/{_COUNT}: it is no web data set of CLIP_benchmark's layout."
        )


def _revision(root: Path) -> str:
    """`@` and the commit that was fetched, as the hub's library notes it; nothing if by others."""
    note = root / ".cache" / "huggingface" / "download" / _SPLIT / f"{_COUNT}.metadata"
    try:
        return f"@{read_input(note, 10_000).decode().splitlines()[0]}"
    except (OSError, ValueError, IndexError):
        return ""
