"""Features in a data set repository of the Hugging Face hub, with the layout of a features folder.

A repository is `ORG/NAME`, or `ORG/NAME@REVISION` with a branch, a tag or a commit. A pull takes
one commit through the hub's cache on this machine, which resumes interrupted downloads and works
offline.
"""

import glob
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath

from zsntta_cli.cache import store
from zsntta_cli.cache.folder import check_folder, feature_path, find, locked
from zsntta_cli.cache.identity import public_identity
from zsntta_cli.cache.store import Features
from zsntta_cli.datasets.catalogue import BUILTIN
from zsntta_cli.datasets.images import numbered
from zsntta_cli.datasets.names import NOISE, SKIPPED, WORDS, SetName
from zsntta_cli.errors import StoreError, first_line, first_of, short
from zsntta_cli.files import scratch, whole_file
from zsntta_cli.settings.prompts import set_of

_KIND = "dataset"  # the hub's type of the repository
_NAMED = 6  # sets in an error
_PATHS = PurePosixPath, PureWindowsPath


@contextmanager
def _asking(repository: str) -> Iterator[None]:
    """Turn errors of the hub's library into one line."""
    from huggingface_hub import errors

    try:
        yield
    except (errors.RepositoryNotFoundError, errors.LocalTokenNotFoundError) as error:
        raise StoreError(
            f"the hub has no data set {repository} that you may read or write: check whether its "
            f"page asks for consent, and log in with hf auth login."
        ) from error
    except Exception as error:  # of the library, its HTTP client and the system
        raise StoreError(f"cannot reach {repository} on the hub ({first_line(error)}).") from error


def pull(
    repository: str,
    root: Path,
    names: Sequence[str],
    encoder: str | None,
    note: Callable[[str], None],
) -> Iterator[tuple[Features, bool]]:
    """Pull the feature files of some sets, or of all; yield each, and whether it is new here.

    `note` reports that another process is being waited for.

    Raises:
        StoreError: the repository has none of these, a file is incomplete, a path already has
            different features, or its folder has another encoder's. Files pulled before stay.
    """
    from huggingface_hub import snapshot_download

    name, _, revision = repository.partition("@")
    folder = "*" if encoder is None else glob.escape(encoder)
    patterns = [f"{folder}/{stem}.h5" for stem in map(glob.escape, names)] or [f"{folder}/*.h5"]
    with _asking(repository):
        snapshot = snapshot_download(
            name, repo_type=_KIND, revision=revision or None, allow_patterns=patterns
        )
    for pattern in patterns:
        files = sorted(Path(snapshot).glob(pattern))
        if not files:
            raise StoreError(f"{repository} has no {pattern}.")
        for file in files:
            path = feature_path(root, file.parent.name, file.stem)
            if wrong := store.problems(file):
                raise StoreError(f"{path.name} on the hub cannot be used: {'; '.join(wrong)}.")
            features = replace(store.read(file, rows=False), path=path)
            check_folder(root, path.parent.name, features.identity)
            with locked(path, note):
                is_new = _copied(file, features)
            yield features, is_new


def _copied(file: Path, features: Features) -> bool:
    """Copy a file to the path of its features; whether it was missing there."""
    path = features.path
    if path.exists():
        if store.read(path, rows=False).digest != features.digest:
            raise StoreError(
                f"{path} holds different features: delete it, or choose another --features-dir"
            )
        return False
    with whole_file(path) as temporary:
        shutil.copyfile(file, temporary)
    return True


def push(
    repository: str,
    root: Path,
    names: Sequence[str] = (),
    encoder: str | None = None,
    *,
    without_ids: bool = False,
    may: bool = False,
) -> tuple[list[Path], str]:
    """Add feature files of `root` to a repository; return their paths and the commit.

    These are the files of some sets or of all, of one encoder or of all. `without_ids` replaces
    their sample ids with numbers. `may` says that the user has read the terms of the sets, which
    this project did not make. The repository is created if necessary.

    Raises:
        StoreError: there are no such files, the terms of some sets were not read, sample ids name
            folders, or the upload fails.
    """
    from huggingface_hub import HfApi

    paths, api = find(root, names, encoder), HfApi()
    if not paths:
        raise StoreError(
            f"no features in {root / (encoder or '')}: type zsntta extract --dataset NAME"
        )
    sets = [SetName.parse(name) for name in dict.fromkeys(path.stem for path in paths)]
    if not may and (foreign := [str(name) for name in sets if not _is_ours(name)]):
        raise StoreError(
            f"the terms of {first_of(foreign, _NAMED)} may not let everybody share features: read "
            f"them, and add --i-may if you may, or name other sets."
        )
    with scratch(root, is_folder=True) as staging:
        for path in paths:
            _write_copy(path, staging / path.parent.name / path.name, without_ids)
        with _asking(repository):
            api.create_repo(repository, repo_type=_KIND, exist_ok=True)
            commit = api.upload_folder(
                repo_id=repository, repo_type=_KIND, folder_path=staging,
                commit_message="features for zsntta",
            )  # fmt: skip
    return paths, str(commit.oid)


def _is_ours(name: SetName) -> bool:
    """Whether this project made the images or the words of a set."""
    is_word_list = name.kind == WORDS and bool(set_of(name.bare))
    return is_word_list or name.kind == NOISE or name.base in BUILTIN


def _write_copy(path: Path, copy: Path, without_ids: bool) -> None:
    """Write a copy of a feature file for everybody, without folders of this machine.

    Without ids, skipped images are only counted.
    """
    features, ids = store.read(path), store.read_sample_ids(path)
    source = dict(features.source)
    if without_ids:
        ids = tuple(numbered(len(ids)))
        source |= {SKIPPED: numbered(len(source[SKIPPED]))} if SKIPPED in source else {}
    absolute = (name for name in ids if any(kind(name).is_absolute() for kind in _PATHS))
    if folder := next(absolute, ""):
        raise StoreError(
            f"sample ids in {path} name folders of this machine ('{short(folder)}'): add "
            f"--without-ids to replace them with numbers."
        )
    public = public_identity(features.identity)
    store.write(replace(features, path=copy, name=path.stem, identity=public, source=source), ids)
