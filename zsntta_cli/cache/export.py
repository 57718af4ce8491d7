"""Exports: a feature file becomes a file or a folder that other tools read, block by block.

`imports` reads all of these forms and makes the same feature file of them.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.export_forms import FOLDERS, SUFFIXES, WRITERS, Outgoing
from zsntta_cli.cache.features import WORDS, FeatureSet, Text
from zsntta_cli.cache.folder import find
from zsntta_cli.cache.manifest import FILE, Manifest, manifest_of, public_identity, public_source
from zsntta_cli.datasets.images import numbered
from zsntta_cli.errors import StoreError, UnknownName, short
from zsntta_cli.files import (
    check_target,
    read_input,
    scratch_folder,
    sync,
    whole_file,
    writing,
)
from zsntta_cli.settings.prompts import cached_prompt

_LARGEST = 2**28  # bytes of a manifest


@dataclass(frozen=True)
class ExportPlan:
    """The set to export, the form, and the place to write it to."""

    name: str
    form: str
    output: Path | None = None  # None: by the set's name, in the current folder
    encoder: str | None = None  # a folder's name; None: the only one that has the set
    prompts: Sequence[str] = ()  # whose text features are exported; empty: all
    without_ids: bool = False
    overwrite: bool = False

    def __post_init__(self) -> None:
        if self.form not in WRITERS:
            raise UnknownName("form", self.form, [*WRITERS])

    @property
    def target(self) -> Path:
        """The file or folder that is written."""
        return self.output or Path(f"{self.name}{SUFFIXES[self.form]}")


@dataclass(frozen=True)
class Exported:
    """The result of an export."""

    path: Path
    images: int
    dim: int
    notes: tuple[str, ...]


def export_features(plan: ExportPlan, root: Path) -> Exported:
    """Write the features of a set in another form, whole or not at all.

    Raises:
        MissingFeatures: the set is not cached.
        StoreError: the target exists already, the set has no images, or the file is broken or
            cannot be written.
    """
    path = _feature_file(plan, root)
    is_folder = plan.form in FOLDERS
    _check_free(plan, is_folder)
    features, ids = hdf5.read_without_rows(path)
    if features.kind == WORDS or not len(features):
        raise StoreError(f"'{plan.name}' has no images, so there is nothing to export.")
    outgoing = _outgoing(plan, features, ids)
    with _whole_folder(plan.target) if is_folder else whole_file(plan.target) as temporary:
        WRITERS[plan.form](temporary, outgoing)
    return Exported(plan.target, len(features), features.dim, tuple(_notes(plan, ids)))


def _feature_file(plan: ExportPlan, root: Path) -> Path:
    paths = find(root, [plan.name], plan.encoder)
    if len(paths) > 1:
        encoders = ", ".join(path.parent.name for path in paths)
        raise StoreError(f"'{plan.name}' is cached of {encoders}: choose one with --encoder NAME.")
    return paths[0]


def _outgoing(plan: ExportPlan, features: FeatureSet, ids: Sequence[str]) -> Outgoing:
    texts = _chosen(features, plan.prompts)
    sample_ids = () if plan.without_ids else ids
    read_back = numbered(len(ids)) if plan.without_ids else ids
    manifest = manifest_of(
        features, texts, read_back, encoder=public_identity(features.identity),
        source=public_source(features.source, plan.without_ids),
    )  # fmt: skip
    return Outgoing(features, sample_ids, texts, manifest)


def _chosen(features: FeatureSet, prompts: Sequence[str]) -> list[Text]:
    """Choose text features by prompts, which are names or templates in full."""
    by_template = {text.template: text for text in features.texts()}
    wanted = [prompt if prompt in by_template else cached_prompt(prompt) for prompt in prompts]
    for prompt in wanted:
        if prompt not in by_template:
            held = ", ".join(f"'{template}'" for template in by_template) or "no template"
            raise StoreError(
                f"{features.path} has no text features of '{short(prompt)}', it has {held}."
            )
    return [by_template[prompt] for prompt in dict.fromkeys(wanted)] or [*by_template.values()]


def _notes(plan: ExportPlan, ids: Sequence[str]) -> Iterator[str]:
    leading = next((name for name in ids if _leads(name)), None)
    if leading is not None and not plan.without_ids:
        yield (
            f"sample ids have folders of this machine ('{short(leading)}'): --without-ids leaves "
            f"them out"
        )


def _leads(sample_id: str) -> bool:
    return PurePosixPath(sample_id).is_absolute() or PureWindowsPath(sample_id).is_absolute()


# What exists at the target already.


def _check_free(plan: ExportPlan, is_folder: bool) -> None:
    """Refuse to replace what exists without `overwrite`; a folder must be an export's as well."""
    target = plan.target
    if is_folder:
        _check_folder(target, plan.overwrite)
    elif not check_target(target) and not plan.overwrite and _has_content(target):
        raise StoreError(f"{target} is there already", remedy="overwrite-output")


def _has_content(file: Path) -> bool:
    with writing(file):
        return file.exists() and file.stat().st_size > 0


def _check_folder(target: Path, overwrite: bool) -> None:
    if not os.path.lexists(target):
        return
    if not target.is_dir() or target.is_symlink():
        raise StoreError(f"{target} is no folder, and this form is one: name a folder that is new.")
    with writing(target):
        contents = {
            str(path.relative_to(target)) for path in target.rglob("*") if not _is_dir(path)
        }
    if contents and not overwrite:
        raise StoreError(f"{target} is there already", remedy="overwrite-output")
    if foreign := sorted(contents - _exported_files(target) - {FILE}):
        raise StoreError(
            f"{target} holds '{short(foreign[0])}', which no export has written: name another "
            f"folder, or empty this one."
        )


def _is_dir(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _exported_files(folder: Path) -> set[str]:
    """The files that an export has written to a folder, by the list in its manifest."""
    with contextlib.suppress(OSError, ValueError, StoreError):
        return {*Manifest.parse(read_input(folder / FILE, _LARGEST).decode()).files}
    return set()


@contextlib.contextmanager
def _whole_folder(target: Path) -> Iterator[Path]:
    """Give a folder to write to, which takes the name `target` once it is finished and durable.

    No system call replaces a folder that has files in it, so the old one is called NAME.old for
    that moment.
    """
    target = Path(os.path.realpath(target))
    old = target.with_name(f"{target.name}.old")
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(old):
            raise StoreError(f"{old} was left by an export that was cut short: move it away first.")
        with scratch_folder(target.parent) as temporary:
            yield temporary
            for path in (*temporary.rglob("*"), temporary):
                sync(path)
            if target.exists():
                os.replace(target, old)
            os.replace(temporary, target)
            sync(target.parent)
            shutil.rmtree(old, ignore_errors=True)
