"""A bundle: one file with results and all that is needed to repeat them, but for the features.

A zip archive, which any program opens:

    bundle.json     the format, the command that made it, the versions of the software
    records.jsonl   the runs, as `records export` writes them, with items that were kept
    features.json   the feature files that the runs read: digests, how they were made, commands
    plugins/*.py    the sources of methods from outside the package
    tables/*        the results as tables, for people only

Its last 64 bytes, the end of the archive's comment, are the SHA-256 (hex) of the file with zeros in
their place, so a bundle in which one byte has changed is refused. It is a checksum and no
signature: it does not protect from forgery.
"""

import contextlib
import hashlib
import io
import json
import re
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from zsntta_cli import __version__
from zsntta_cli.errors import StoreError, first_line, short
from zsntta_cli.files import read_input, write_whole
from zsntta_cli.plugins import load_script
from zsntta_cli.results.exchange import export_text, read_text
from zsntta_cli.results.kept import Kept

FORMAT = 1
_ABOUT, _RECORDS, _FEATURES = "bundle.json", "records.jsonl", "features.json"
_PLUGINS, _TABLES = "plugins/", "tables/"
_COMMENT = b"zsntta bundle, SHA-256 with zeros in place of these digits: "
_DIGITS = 64
_ZEROS = b"0" * _DIGITS
_LARGEST = 2**28  # bytes of the file, and of what is in it
_CLOCK = (1980, 1, 1, 0, 0, 0)  # of every member: equal bundles are equal files


@dataclass(frozen=True)
class Bundle:
    """What a bundle holds."""

    runs: Sequence[Kept]
    features: Mapping[str, Any] = field(default_factory=dict)
    plugins: Mapping[str, bytes] = field(default_factory=dict)  # sources by file name
    tables: Mapping[str, str] = field(default_factory=dict)  # texts by file name
    command: str = ""  # that made it


def write_bundle(path: Path, bundle: Bundle) -> None:
    """Write a bundle as a whole, or not at all.

    Raises:
        StoreError: the file cannot be written, or would be too large to be read again.
    """
    content, members = io.BytesIO(), list(_members(bundle))
    if sum(len(member) for _, member in members) > _LARGEST:
        raise StoreError(
            f"{len(bundle.runs):,} runs are more than the {_LARGEST:,} bytes of a bundle: choose "
            f"fewer, by --id or --method, for several bundles."
        )
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, member in members:
            archive.writestr(zipfile.ZipInfo(name, _CLOCK), member, zipfile.ZIP_DEFLATED)
        archive.comment = _COMMENT + _ZEROS
    unsigned = content.getvalue()
    write_whole(path, unsigned[:-_DIGITS] + hashlib.sha256(unsigned).hexdigest().encode())


def _members(bundle: Bundle) -> Iterator[tuple[str, bytes]]:
    about = {"format": FORMAT, "command": bundle.command, "versions": _versions(bundle.runs)}
    yield _ABOUT, _json(about)
    yield _RECORDS, export_text(bundle.runs, "jsonl").encode()
    yield _FEATURES, _json(bundle.features)
    yield from ((_PLUGINS + name, source) for name, source in sorted(bundle.plugins.items()))
    for name, text in sorted(bundle.tables.items()):
        yield _TABLES + name, text.encode(errors="surrogateescape")


def _json(plain: Any) -> bytes:
    return (json.dumps(plain, indent=1) + "\n").encode()


def _versions(runs: Sequence[Kept]) -> dict[str, list[str]]:
    """The versions that made the runs, and the version that made the bundle."""
    versions: dict[str, set[str]] = {"zsntta": {__version__}}
    for kept in runs:
        for name, version in kept.record.versions.items():
            versions.setdefault(name, set()).add(version)
    return {name: sorted(values) for name, values in versions.items()}


def read_bundle(path: Path) -> Bundle:
    """Read a bundle; none of its code is executed.

    Raises:
        StoreError: the file is no bundle, a byte of it has changed, or its format is newer.
    """
    try:
        content = read_input(path, _LARGEST)
        _check_digest(path, content)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return _bundle(path, _contents(path, archive))
    except (OSError, ValueError, LookupError, zipfile.BadZipFile, RecursionError) as error:
        raise StoreError(f"{path} is no bundle ({first_line(error)}).") from error


def _check_digest(path: Path, content: bytes) -> None:
    body, digits = content[:-_DIGITS], content[-_DIGITS:]
    if not body.endswith(_COMMENT):
        raise StoreError(f"{path} is no bundle: records bundle makes one.")
    if hashlib.sha256(body + _ZEROS).hexdigest().encode() != digits:
        raise StoreError(
            f"{path} is not as it was made: its checksum differs. Fetch it again, or ask who "
            f"made it."
        )


def _contents(path: Path, archive: zipfile.ZipFile) -> dict[str, bytes]:
    """The members of a bundle by name."""
    members = archive.infolist()
    if sum(member.file_size for member in members) > _LARGEST:
        raise StoreError(f"{path} holds more than {_LARGEST:,} bytes.")
    return {member.filename: archive.read(member) for member in members}


def _bundle(path: Path, contents: Mapping[str, bytes]) -> Bundle:
    about = json.loads(contents[_ABOUT])
    if about["format"] > FORMAT:
        made_with = ", ".join(about["versions"]["zsntta"])
        raise StoreError(f"{path} is of a newer zsntta ({made_with}): install that version.")
    return Bundle(
        read_text(path, contents[_RECORDS].decode()),
        json.loads(contents[_FEATURES]),
        _named(contents, _PLUGINS),
        {name: text.decode() for name, text in _named(contents, _TABLES).items()},
        str(about["command"]),
    )


@contextlib.contextmanager
def load_plugins(bundle: Bundle) -> Iterator[None]:
    """Execute the scripts of a bundle, as `--plugin` does; their files exist within the context.

    Raises:
        PluginError: a script cannot be executed, or adds a method that exists already.
        StoreError: a file would lie outside the temporary folder.
    """
    with tempfile.TemporaryDirectory(prefix="zsntta-") as folder:
        for name, source in bundle.plugins.items():
            path = Path(folder, *_parts(name))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(source)
        for name in _scripts(bundle):
            load_script(Path(folder, name))
        yield


def _parts(name: str) -> tuple[str, ...]:
    parts = PurePosixPath(name).parts
    if not parts or not all(re.fullmatch(r"\w[\w.-]*", part) for part in parts):
        raise StoreError(f"the bundle has a file '{short(name)}', which is no name of a source.")
    return parts


def _scripts(bundle: Bundle) -> list[str]:
    """The scripts that add methods: the first file of each method; they import the other files."""
    own_methods = [kept.record.own for kept in bundle.runs if kept.record.own]
    firsts = dict.fromkeys(next(iter(each.files), "") for each in own_methods)
    return [name for name in firsts if name in bundle.plugins and "/" not in name]


def _named(contents: Mapping[str, bytes], folder: str) -> dict[str, bytes]:
    """The members of a folder of the archive, by their names within it."""
    return {
        name.removeprefix(folder): content
        for name, content in contents.items()
        if name.startswith(folder)
    }
