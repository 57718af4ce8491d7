"""The layout of a features folder, and its content: feature files and unfinished work."""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zsntta_cli.cache.identity import check_same
from zsntta_cli.datasets.names import DATASET, SetName, check_plain
from zsntta_cli.errors import StoreError, first_line
from zsntta_cli.files import sha256, writing
from zsntta_cli.settings import EncoderChoice

if TYPE_CHECKING:
    from zsntta_cli.cache.store import Features

_DIGITS = 8  # of a weights file's digest in its folder's name


def encoder_folder(root: Path, encoder_name: str) -> Path:
    """The folder of one encoder's features: SettingsError if the name leads out of `root`."""
    check_plain("encoder", encoder_name)
    return root / encoder_name


def folder_name(choice: EncoderChoice) -> str:
    """The folder name of an encoder's features.

    Files of weights are told apart by their content, as downloads from the hub all have the same
    name: the folder name ends with digits of the digest.
    """
    if choice.folder or not choice.is_file:
        return choice.slug
    weights = Path(choice.pretrained).absolute()
    status = weights.stat()
    digest = _digest(weights, status.st_size, status.st_mtime_ns, status.st_ino)
    return f"{choice.slug}-{digest[:_DIGITS]}"


@lru_cache(maxsize=16)
def _digest(weights: Path, *_state: int) -> str:
    """The sha256 of a file, which is computed once unless the file changes."""
    return sha256(weights)


def feature_path(root: Path, encoder_name: str, name: str) -> Path:
    """The path of a set's feature file: SettingsError if a name leads out of `root`."""
    check_plain("set", name)
    return encoder_folder(root, encoder_name) / f"{name}.h5"


def parts_folder(path: Path) -> Path:
    """The folder with the parts from which the feature file at `path` is joined."""
    return path.with_name(f"{path.stem}.parts")


def part_path(path: Path, index: int, of: int) -> Path:
    """The feature file of a part, by its number from 1, of the set that is joined at `path`."""
    return parts_folder(path) / f"{index:05d}-of-{of:05d}.h5"


@contextlib.contextmanager
def locked(path: Path, note: Callable[[str], None]) -> Iterator[None]:
    """Let one process write the file at `path`; note it if another one has to be waited for."""
    from filelock import (  # listing names, as a shell's completion does, needs none
        FileLock,
        Timeout,
    )

    lock = FileLock(path.with_name(f".{path.stem}.lock"))
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            note(f"{path} is being written by another process: waiting.")
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


@dataclass(frozen=True)
class Stored:
    """One feature file or one unfinished extraction."""

    path: Path
    size: int  # bytes
    header: "Features | None" = None
    problem: str = ""  # why there is no header

    @property
    def encoder_name(self) -> str:
        """The folder name of the encoder."""
        return self.path.parent.name

    @property
    def name(self) -> str:
        """The set's name."""
        return self.path.stem.removeprefix(".")


def described(root: Path, encoder_name: str) -> "list[Features]":
    """The descriptions of an encoder's feature files, without those that are broken."""
    return [of for path in _files(root, encoder_name) if (of := _file(path).header)]


def check_folder(root: Path, encoder_name: str, identity: Mapping[str, Any]) -> "list[Features]":
    """The descriptions in a folder, none of which is of another encoder than `identity`.

    Weights behind a name may change, and files of another folder may have been copied to this one.

    Raises:
        StoreError: one is of another encoder.
    """
    files = described(root, encoder_name)
    for other in files:
        check_same(other.path, other.identity, identity)
    return files


def stored(root: Path, encoder_name: str | None = None) -> list[Stored]:
    """List all feature files and unfinished extractions, of one encoder's folder or of all."""
    contents = []
    for path in _entries(root, encoder_name):
        with contextlib.suppress(FileNotFoundError):  # it was removed meanwhile
            if _is_feature_file(path):
                contents.append(_file(path))
            elif path.name.startswith(".") and path.suffix == ".rows":
                contents.append(Stored(path, path.stat().st_size, problem="unfinished"))
            elif path.suffix == ".parts" and not path.with_suffix(".h5").exists():
                contents.append(_not_joined(path))
    return sorted(contents, key=lambda entry: (entry.encoder_name, entry.name, entry.problem))


def answer_paths(
    root: Path, encoder_name: str | None = None, names: Sequence[str] = ()
) -> list[Path]:
    """List the files of TPT's answers for some sets, or for all."""
    from zsntta_cli.cache.answers import SUFFIX  # listing names needs no h5py

    entries = _entries(root, encoder_name)
    files = [path for path in entries if path.suffix == SUFFIX and not path.name.startswith(".")]
    return sorted(path for path in files if not names or Path(path.stem).stem in names)


def set_names(root: Path, encoder_name: str, kind: str = DATASET) -> list[str]:
    """The sets of a kind that an encoder has features of; only the files' names are looked at."""
    paths = _files(root, encoder_name)
    return [path.stem for path in paths if SetName.parse(path.stem).kind == kind]


def encoders_with(root: Path, name: str, parameters: bool = False) -> list[str]:
    """The folders of encoders that have features of a set, or of it with any `parameters`."""
    names = {path: (path.stem, SetName.parse(path.stem).base) for path in _files(root, None)}
    return sorted({p.parent.name for p, own in names.items() if name in own[: 1 + parameters]})


def encoder_names(root: Path) -> list[str]:
    """The folders of encoders that have features."""
    return sorted({path.parent.name for path in _files(root, None)})


def find(root: Path, names: Sequence[str] = (), encoder_name: str | None = None) -> list[Path]:
    """Find the feature files of some sets, or of all if none is named.

    Raises:
        StoreError: a set has no feature file.
    """
    from zsntta_cli.cache.lacking import missing_features

    files = _files(root, encoder_name)
    cached_names = tuple(dict.fromkeys(path.stem for path in files))
    for name in names:
        if name not in cached_names:
            raise missing_features(name, encoder_name or "", root, cached_names)
    return [path for path in files if not names or path.stem in names]


def parts_of(root: Path, name: str, encoder_name: str | None = None) -> list[Path]:
    """Find the parts of a set, of one encoder or of all, and give the paths to join them at.

    Raises:
        StoreError: the set has no parts.
    """
    from zsntta_cli.cache.lacking import missing_features

    check_plain("set", name)
    folders = [p for p in _entries(root, encoder_name) if p.suffix == ".parts" and p.is_dir()]
    folders = [folder for folder in folders if not folder.name.startswith(".")]
    if paths := [folder.with_suffix(".h5") for folder in folders if folder.stem == name]:
        return paths
    raise missing_features(name, encoder_name or "", root, tuple(f.stem for f in folders))


def _files(root: Path, encoder_name: str | None) -> list[Path]:
    """The feature files, in order; the encoder is a folder's name and never a pattern."""
    return [path for path in _entries(root, encoder_name) if _is_feature_file(path)]


def _is_feature_file(path: Path) -> bool:
    return path.suffix == ".h5" and not path.name.startswith(".") and path.is_file()


def _entries(root: Path, encoder_name: str | None) -> list[Path]:
    """List all that lies in the folder of an encoder, or in the folders of all, in order.

    Raises:
        StoreError: a folder cannot be read.
    """
    try:
        if encoder_name is not None:
            folders = [encoder_folder(root, encoder_name)]
        else:
            folders = [*root.iterdir()] if root.is_dir() else []
        return sorted(path for folder in folders if folder.is_dir() for path in folder.iterdir())
    except OSError as error:
        raise StoreError(f"cannot list features ({first_line(error)}).") from error


def _file(path: Path) -> Stored:
    from zsntta_cli.cache import store  # listing names, as a shell's completion does, needs no h5py

    try:
        return Stored(path, path.stat().st_size, store.read(path, rows=False))
    except StoreError as error:
        reason = re.search(r"\((.*)\)", str(error))
        return Stored(
            path, path.stat().st_size, problem=f"broken: {reason[1] if reason else error}"
        )


def _not_joined(path: Path) -> Stored:
    """Count the parts of a set that are not joined yet."""
    parts = list(path.glob("[0-9]*.h5"))
    size = sum(part.stat().st_size for part in parts)
    return Stored(path, size, problem=f"{len(parts)} parts, not joined")
