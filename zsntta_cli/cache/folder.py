"""The layout of a features folder: where files are, which exist, and which process writes one."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zsntta_cli.cache.identity import check_same
from zsntta_cli.datasets.names import DATASET, SetName, check_plain
from zsntta_cli.errors import StoreError
from zsntta_cli.files import sha256, writing
from zsntta_cli.settings import EncoderChoice

if TYPE_CHECKING:
    from zsntta_cli.cache.store import Features

# Endings of what is beside feature files: rows of an unfinished one, parts of a set, TPT's answers.
ROWS, PARTS, ANSWERS = ".rows", ".parts", ".tpt"
_DIGITS = 8  # of a weights file's digest in its folder's name


def encoder_folder(root: Path, encoder_name: str) -> Path:
    """The folder of one encoder's features: SettingsError if the name leads out of `root`."""
    check_plain("encoder", encoder_name)
    return root / encoder_name


def feature_path(root: Path, encoder_name: str, name: str) -> Path:
    """The path of a set's feature file: SettingsError if a name leads out of `root`."""
    check_plain("set", name)
    return encoder_folder(root, encoder_name) / f"{name}.h5"


def folder_name(choice: EncoderChoice) -> str:
    """The folder name of an encoder's features.

    Weights files are distinguished by their content, as downloads from the hub all have the same
    name: the folder name ends with digits of the digest.
    """
    if choice.folder or not choice.file:
        return choice.slug
    weights = Path(choice.pretrained).absolute()
    return f"{choice.slug}-{_digest(weights, weights.stat().st_mtime_ns)[:_DIGITS]}"


@lru_cache(maxsize=16)
def _digest(weights: Path, _changed: int) -> str:
    """The sha256 of a file, which is computed once unless the file changes."""
    return sha256(weights)


@contextlib.contextmanager
def locked(path: Path, note: Callable[[str], None]) -> Iterator[None]:
    """Let one process write the file at `path`; note it if another one is being waited for."""
    from filelock import FileLock, Timeout  # what only reads needs none

    lock = FileLock(path.with_name(f".{path.stem}.lock"))
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            note(f"waiting for another process that writes {path}.")
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


def entries(root: Path, encoder_name: str | None) -> list[Path]:
    """All entries of an encoder's folder, or of all encoders' folders, in order.

    The encoder is a folder name, never a pattern.
    """
    if encoder_name is not None:
        folders = [encoder_folder(root, encoder_name)]
    else:
        folders = sorted(root.iterdir()) if root.is_dir() else []
    return [path for folder in folders if folder.is_dir() for path in sorted(folder.iterdir())]


def is_feature_file(path: Path) -> bool:
    """Whether an entry has the name of a feature file."""
    return path.suffix == ".h5" and not path.name.startswith(".") and path.is_file()


def find(root: Path, names: Sequence[str] = (), encoder_name: str | None = None) -> list[Path]:
    """Find the feature files of the named sets, or of all if none is named, in order.

    Raises:
        StoreError: a set has no feature file.
    """
    files = [*filter(is_feature_file, entries(root, encoder_name))]
    cached_names = dict.fromkeys(path.stem for path in files)
    for name in names:
        if name not in cached_names:
            from zsntta_cli.cache.lacking import missing_features

            raise missing_features(name, encoder_name or "", root, tuple(cached_names))
    return [path for path in files if not names or path.stem in names]


def set_names(root: Path, encoder_name: str, kind: str = DATASET) -> list[str]:
    """The sets of a kind with features of an encoder; only file names are read."""
    names = [path.stem for path in find(root, (), encoder_name)]
    return [name for name in names if SetName.parse(name).kind == kind]


def encoder_names(root: Path, name: str = "") -> list[str]:
    """The folders of encoders with features of any set, or of one set with any parameters."""
    folders = dict[str, None]()
    for path in find(root):
        if name in ("", SetName.parse(path.stem).base):
            folders[path.parent.name] = None
    return [*folders]


def described(root: Path, encoder_name: str) -> "list[Features]":
    """The descriptions of an encoder's feature files, without those that are broken."""
    from zsntta_cli.cache import store  # listing names, as a shell's completion does, needs no h5py

    descriptions = []
    for path in find(root, (), encoder_name):
        with contextlib.suppress(StoreError):
            descriptions.append(store.read(path, rows=False))
    return descriptions


def check_folder(root: Path, encoder_name: str, identity: Mapping[str, Any]) -> None:
    """Check that all files of a folder are from the encoder with this identity.

    Weights behind a name may change, and files of another folder may have been copied to this one.

    Raises:
        StoreError: a file is from a different encoder.
    """
    for file in described(root, encoder_name):
        check_same(file.path, file.identity, identity)
