"""Pulling feature files from a place into a features folder: each is as its index says, or absent.

A file is fetched into `.SET.DIGEST.part` beside its path, verified, and then takes its name.
"""

import glob
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zsntta_cli.cache.features import difference
from zsntta_cli.cache.folder import feature_path, lock_path, stored
from zsntta_cli.cache.hdf5 import read_features, read_header
from zsntta_cli.cache.origin import note_source
from zsntta_cli.errors import StoreError, counted, near
from zsntta_cli.files import lock_at, sha256, take_name, writing
from zsntta_cli.progress import Reporter
from zsntta_cli.sharing.index import Index, IndexEntry, path_of
from zsntta_cli.sharing.stores import FeaturePlace


@dataclass(frozen=True)
class Pulled:
    """The result of pulling one feature file."""

    path: Path
    entry: IndexEntry
    is_new: bool  # False: it existed already

    @property
    def line(self) -> str:
        """The result in one line."""
        header, mebibytes = self.entry.header, self.entry.size / 2**20
        facts = (
            counted(header.images, "image") if header.images else counted(header.classes, "word")
        )
        return f"{self.path}: {facts}, {mebibytes:,.1f} MiB" + ", there already" * (not self.is_new)


def chosen(
    index: Index, address: str, names: Sequence[str] = (), encoder: str | None = None
) -> list[tuple[str, str]]:
    """Choose files by sets and encoder, and give their encoders' folders and sets' names.

    Without names, all files are chosen.

    Raises:
        StoreError: the place does not have the encoder or a set.
    """
    if encoder is not None and encoder not in index.encoders:
        raise StoreError(
            f"{address} has no features by {encoder}: it has {', '.join(index.encoders) or 'none'}."
        )
    encoders = [encoder] if encoder is not None else index.encoders
    files = [(folder, name) for folder in encoders for name in index.names(folder)]
    set_names = sorted({name for _, name in files})
    for name in names:
        if name not in set_names:
            raise StoreError(f"{address} has no features of '{name}'{near(name, set_names)}.")
    return [(folder, name) for folder, name in files if not names or name in names]


def pull(
    store: FeaturePlace,
    index: Index,
    root: Path,
    files: Sequence[tuple[str, str]],
    reporter: Reporter,
) -> Iterator[Pulled]:
    """Pull files, by their encoders' folders and their sets' names, into a features folder.

    Raises:
        StoreError: a path has other features, which is checked before anything is fetched; or a
            file cannot be fetched, or is not what its index says. Files before it stay.
    """
    wanted = [
        (feature_path(root, *file), index.files[path_of(*file)]) for file in dict.fromkeys(files)
    ]
    lacking = [path for path, entry in wanted if not _is_there(path, entry)]
    _check_encoders(root, wanted)
    for path, entry in wanted:
        if path in lacking:
            _fetch(store, path, entry, reporter)
        yield Pulled(path, entry, path in lacking)


def _is_there(path: Path, entry: IndexEntry) -> bool:
    """Whether a path has the same features already: StoreError if it has others."""
    if not path.exists():
        return False
    header = read_header(path)
    if header.digest != entry.digest or difference(header.identity, entry.header.identity):
        raise StoreError(f"{path} holds other features than these", remedy="other-folder")
    return True


def _check_encoders(root: Path, wanted: Sequence[tuple[Path, IndexEntry]]) -> None:
    """Refuse a file of another encoder than the other files of its folder, old or new ones."""
    firsts: dict[str, tuple[Path, Mapping[str, Any]]] = {}
    for path, entry in wanted:
        folder, identity = path.parent.name, entry.header.identity
        if folder not in firsts:
            cached = ((f.path, f.header.identity) for f in stored(root, folder) if f.header)
            firsts[folder] = next(cached, (path, identity))
        first, first_identity = firsts[folder]
        if mismatch := difference(first_identity, identity):
            raise StoreError(
                f"{first} is of another encoder than '{path.stem}' ({mismatch.key}: "
                f"{mismatch.one}, not {mismatch.other})",
                remedy="other-folder",
            )


def _fetch(store: FeaturePlace, path: Path, entry: IndexEntry, reporter: Reporter) -> None:
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.stem}.{entry.sha256[:16]}.part")
    where = f"{store.address}/{path.parent.name}/{path.name}"
    with lock_at(lock_path(path)):  # an extraction takes the same lock
        if path.exists():  # another process has made it meanwhile
            _is_there(path, entry)
            return
        with reporter.waiting(lambda: f"fetching {where}"), writing(part):
            store.fetch(f"{path.parent.name}/{path.name}", part, entry.size)
        _verify(part, path, entry, where)
        note_source(path, store.address, store.revision, entry.digest)
        take_name(part, path)
        for older in path.parent.glob(f".{glob.escape(path.stem)}.*.part"):
            older.unlink(missing_ok=True)  # a part of a version that the place no longer has


def _verify(part: Path, path: Path, entry: IndexEntry, where: str) -> None:
    """Refuse a file that is not the one in the index; a file that is too short is kept."""
    size = part.stat().st_size
    if size < entry.size:
        raise StoreError(
            f"{where} broke off after {size:,} of {entry.size:,} bytes: the same command goes on."
        )
    if (actual := sha256(part)) != entry.sha256:
        part.unlink()
        raise StoreError(
            f"{where} is not what its index says: its sha256 is {actual[:12]}…, must be "
            f"{entry.sha256[:12]}…. Nothing of it was kept."
        )
    try:
        features = read_features(part)
        header = read_header(part)
    except StoreError as error:
        part.unlink()
        raise StoreError(f"{where} is no sound feature file: {error}") from error
    is_as_listed = (header.digest, header.identity, header.kind) == (
        entry.digest, entry.header.identity, entry.header.kind,
    )  # fmt: skip
    if not is_as_listed or features.name != path.stem:
        part.unlink()
        raise StoreError(f"{where} holds other features than its index says. It was not kept.")
