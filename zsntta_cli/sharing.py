"""Features in a data set repository of the Hugging Face hub, with the layout of a features folder.

A repository is `ORG/NAME`, or `ORG/NAME@REVISION` with a branch, a tag or a commit. What is pulled
comes from one commit through the hub's cache on this machine, which resumes what broke off, and
serves without a network.
"""

import glob
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from filelock import FileLock

from zsntta_cli import datasets
from zsntta_cli.cache import store
from zsntta_cli.cache.folder import check_folder, feature_path, find, lock_path
from zsntta_cli.cache.identity import names_a_folder, public_identity
from zsntta_cli.cache.origin import note_source
from zsntta_cli.cache.store import Features
from zsntta_cli.datasets.images import numbered
from zsntta_cli.datasets.names import DATASET, WORDS, SetName
from zsntta_cli.errors import MissingFeatures, StoreError, counted, first_line, short
from zsntta_cli.files import scratch_folder, whole_file, writing
from zsntta_cli.settings.prompts import set_of

_KIND = "dataset"  # the hub's type of the repository
_OWN, _NOT_KNOWN = "MIT", "not known"  # of images and word lists that this project makes; of others
_FREE = ("MIT", "BSD", "CC0", "CC BY")  # first words of licences that let anybody pass copies on
_NAMED = 6  # sets in an error
_CARD = """---
license: other
tags: [zsntta, clip, image-features, out-of-distribution-detection]
pretty_name: Features for zsntta
---

# Features, not images

Image features and text features of CLIP models, as `zsntta extract` makes them. They hold no
images; the images that they were made from have terms of their own.

```sh
zsntta cache pull {repository}
```
"""


@dataclass(frozen=True)
class Pulled:
    """The result of pulling one feature file."""

    path: Path
    features: Features
    is_new: bool  # False: it existed already

    @property
    def line(self) -> str:
        """The result in one line."""
        images, words = len(self.features), len(self.features.class_names)
        facts = counted(images, "image") if images else counted(words, "word")
        return f"{self.path}: {facts}" + ", there already" * (not self.is_new)


@dataclass(frozen=True)
class PushPlan:
    """The sets to publish, and the features folder that they are in."""

    root: Path
    names: Sequence[str] = ()  # empty: all sets
    encoder: str | None = None
    without_ids: bool = False  # sample ids, which are mostly file names, become numbers
    may: bool = False  # the user has read the terms that do not allow this to everybody


@contextmanager
def _asking(repository: str) -> Iterator[None]:
    """Turn errors of the hub's library into one line."""
    from huggingface_hub import errors

    try:
        yield
    except StoreError:
        raise
    except errors.GatedRepoError as error:
        raise StoreError(
            f"{repository} asks for consent: give it at its page on the hub, then hf auth login."
        ) from error
    except (errors.RepositoryNotFoundError, errors.LocalTokenNotFoundError) as error:
        raise StoreError(
            f"the hub has no data set {repository}, or you may not see or write it: hf auth login "
            f"says who you are."
        ) from error
    except Exception as error:  # of the library, its HTTP client and the system
        raise StoreError(f"cannot reach {repository} on the hub ({first_line(error)}).") from error


def pull(
    repository: str, root: Path, names: Sequence[str] = (), encoder: str | None = None
) -> Iterator[Pulled]:
    """Pull the feature files of some sets, or of all, by one encoder or by all.

    Raises:
        StoreError: the repository has none of these, a file is not whole, a path has other
            features, or a folder those of another encoder. Files before it stay.
    """
    from huggingface_hub import snapshot_download

    name, _, revision = repository.partition("@")
    folder = "*" if encoder is None else glob.escape(encoder)
    patterns = [f"{folder}/{glob.escape(one)}.h5" for one in names] or [f"{folder}/*.h5"]
    with _asking(repository):
        snapshot = Path(
            snapshot_download(
                name, repo_type=_KIND, revision=revision or None, allow_patterns=patterns
            )
        )
    for pattern in patterns:
        files = sorted(snapshot.glob(pattern))
        if not files:
            raise StoreError(f"{repository} has no {pattern}.")
        for file in files:
            yield _take(file, root, f"{name}@{snapshot.name}")


def _take(file: Path, root: Path, source: str) -> Pulled:
    """Take a fetched file into a features folder, unless it is there."""
    path = feature_path(root, file.parent.name, file.stem)
    features = store.read(file)
    if features.name != path.stem:
        raise StoreError(f"{source} has features of '{short(features.name)}' as {path.stem}.h5.")
    check_folder(root, path.parent.name, features.identity)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(lock_path(path)):  # an extraction takes the same lock
        if path.exists():
            if store.read(path, rows=False).digest != features.digest:
                raise StoreError(f"{path} holds other features than these", remedy="other-folder")
            return Pulled(path, features, is_new=False)
        note_source(path, source, features.digest)
        with whole_file(path) as temporary:
            shutil.copyfile(file, temporary)
    return Pulled(path, features, is_new=True)


def push(repository: str, plan: PushPlan) -> tuple[list[Path], str]:
    """Publish feature files beside those that a repository has; return them, and the commit.

    The repository is made if need be.

    Raises:
        StoreError: there are none, the terms of some do not let everybody pass them on, sample ids
            name folders, or the upload fails.
    """
    from huggingface_hub import HfApi

    paths, api = _files_to_push(plan), HfApi()
    with scratch_folder(plan.root) as staging:
        for path in paths:
            _write_copy(path, staging / path.parent.name / path.name, plan)
        with _asking(repository):
            api.create_repo(repository, repo_type=_KIND, exist_ok=True)
            if not api.file_exists(repository, "README.md", repo_type=_KIND):
                (staging / "README.md").write_text(_CARD.format(repository=repository))
            commit = api.upload_folder(
                repo_id=repository, repo_type=_KIND, folder_path=staging,
                commit_message="features for zsntta",
            )  # fmt: skip
    return paths, str(commit.oid)


def _files_to_push(plan: PushPlan) -> list[Path]:
    paths = find(plan.root, plan.names, plan.encoder)
    if not paths:
        raise MissingFeatures("any set", plan.encoder or "", str(plan.root))
    licences = {
        path.stem: _licence_of(path.stem, store.read(path, rows=False).kind) for path in paths
    }
    bound = [name for name, licence in licences.items() if not licence.startswith(_FREE)]
    if bound and not plan.may:
        shown = ", ".join(f"{name} ({licences[name]})" for name in bound[:_NAMED])
        more = f" and {len(bound) - _NAMED} more" * (len(bound) > _NAMED)
        raise StoreError(
            f"the terms of {shown}{more} do not say that everybody may pass features on: read "
            f"them, and add --i-may if you may, or choose with --set."
        )
    return paths


def _licence_of(name: str, kind: str) -> str:
    """The short name of the licence of a set's images or words."""
    parsed = SetName.parse(name)
    if kind == WORDS:
        return _OWN if set_of(parsed.bare) else _NOT_KNOWN
    if kind != DATASET:  # noise images
        return _OWN
    entry = datasets.CATALOGUE.get(parsed.base)
    return entry.licence if entry and entry.licence else _NOT_KNOWN


def _write_copy(path: Path, copy: Path, plan: PushPlan) -> None:
    """Write a feature file anew, as HDF5 leaves the bytes of what it deletes in the file."""
    features, ids = store.read(path), store.read_sample_ids(path)
    if not plan.without_ids and (telling := [name for name in ids if names_a_folder(name)]):
        raise StoreError(
            f"{path} has sample ids with folders of this machine ('{short(telling[0])}'): add "
            f"--without-ids, and they become numbers."
        )
    public = replace(
        features,
        path=copy,
        name=path.stem,
        identity=public_identity(features.identity),
        source=_public_source(features.source, plan.without_ids),
    )
    store.write(public, numbered(len(ids)) if plan.without_ids else ids)


def _public_source(source: Mapping[str, Any], without_ids: bool) -> dict[str, Any]:
    """A source as it is published; without ids, it only says how many images were left out."""
    skipped = source.get("skipped")
    hidden = {"skipped": numbered(len(skipped))} if isinstance(skipped, list) else {}
    return {**source, **(hidden if without_ids else {})}
