"""At which level of folders the classes of a set of one's own lie.

`PATH` has them directly within. `PATH/*` has them one folder deeper, whatever the folders above are
called: the letters of SUN397, or train and test. `PATH/*/**` makes a class of every folder that
holds images. PATH may go on within an archive: `own.tar/train`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from zsntta_cli.datasets.readers.members import KINDS

ANY, EVERY = "*", "**"  # any one folder; each folder that holds images, at the end
Place = tuple[str, ...]  # the parts of an image's path


class Level(NamedTuple):
    """Where a set lies, and which folders below that are above its classes."""

    base: Path
    above: Place = ()


def level_of(path: Path) -> Level:
    """A path that exists, or goes on with `*` or within an archive."""
    if not path.exists():
        for i, part in enumerate(path.parts[1:], 1):
            base = Path(*path.parts[:i])
            is_archive = base.name.lower().endswith(tuple(KINDS)) and base.is_file()
            if part in (ANY, EVERY) or is_archive:
                return Level(base, path.parts[i:])
    return Level(path)


def at_level(places: Sequence[Place], above: Place) -> dict[Place, Place]:
    """The images below some folders, each by its class and what is below that; others are not."""
    below = {place: _below(place, above) for place in places}
    return {place: rest for place, rest in below.items() if rest}


def _below(place: Place, above: Place) -> Place:
    names_folders = above[-1:] == (EVERY,)
    folders = above[:-1] if names_folders else above
    fits = all(part in (ANY, own) for part, own in zip(folders, place[:-1], strict=False))
    if len(place) <= len(folders) or not fits:
        return ()
    rest = place[len(folders) :]
    return ("/".join(rest[:-1]), rest[-1]) if names_folders and len(rest) > 1 else rest


def literal(above: Place) -> int:
    """How many folders are named, before the first `*`: they are no part of an image's id."""
    stars = [i for i, part in enumerate(above) if part in (ANY, EVERY)]
    return min(stars, default=len(above))


class DeeperClasses(NamedTuple):
    """Folders within class folders that look like the classes."""

    above: str  # the folders that hold them, as a path that may be typed: "train", "*"
    names: list[str]
    leaves: int = 0  # folders that hold images, where they are more than these


_FEW = 4  # class folders that may be the parts of a set: train, val, test
_MOST = 0.9  # of the images, that lie in deeper folders where classes do
_JUDGED_ON = ("test", "val", "valid", "validation")  # of a set's parts, those to be named first


def deeper_classes(sample_ids: Sequence[str]) -> DeeperClasses | None:
    """The folders within class folders, by the images' ids, if they look more like classes.

    They do where nearly all images lie deeper, there are more names of folders there, and the
    folders above are few, are letters, or group them: `train/cat/1.png` and `val/dog/2.png` are of
    two classes, train and val, and `a/abbey/1.png` is of the class a.
    """
    folders = [PurePosixPath(sample_id).parts[:-1] for sample_id in sample_ids]
    at = {depth: _names(folders, depth) for depth in range(max(map(len, folders), default=0))}
    level, was_split = 0, False
    while at.get(level + 1) and (
        _hold_others(folders, level, at) or (not was_split and _are_parts(folders, level, at))
    ):
        was_split = was_split or len(at[level]) > 1
        level += 1
    if not level or len(_paths(folders, level)) <= len(at[0]):
        return None
    above, held = list[str](), [parts for parts in folders if len(parts) > level]
    for depth in range(level):
        names = sorted({parts[depth] for parts in held})
        above.append(_typed(names, {name: _held(held, depth, name, level) for name in names}))
        if above[-1] != ANY:
            held = [parts for parts in held if parts[depth] == above[-1]]
    classes, leaves = {parts[level] for parts in held}, {parts[level:] for parts in held}
    more = len(leaves) if len(leaves) > len(classes) else 0
    return DeeperClasses("/".join(above), sorted(classes), more)


def _names(folders: Sequence[Place], depth: int) -> set[str]:
    """The names of folders at a depth; none where too few images lie so deep."""
    deep = [parts[depth] for parts in folders if len(parts) > depth]
    return set(deep) if len(deep) >= _MOST * len(folders) else set()


def _paths(folders: Sequence[Place], level: int) -> set[Place]:
    return {parts[: level + 1] for parts in folders if len(parts) > level}


def _are_parts(folders: Sequence[Place], level: int, at: Mapping[int, set[str]]) -> bool:
    """Whether the folders at a level may be one folder around all, or the parts of a set."""
    count = len(at[level])
    return count == 1 or (count <= _FEW and len(_paths(folders, level + 1)) > count)


def _hold_others(folders: Sequence[Place], level: int, at: Mapping[int, set[str]]) -> bool:
    """Whether many folders at a level are letters, or group others that are each in one of them."""
    if len(at[level + 1]) < 2 * len(at[level]):
        return False
    pairs = {parts[level : level + 2] for parts in folders if len(parts) > level + 1}
    if all(len(name) == 1 and inner.lower().startswith(name.lower()) for name, inner in pairs):
        return True
    return len(pairs) == len(at[level + 1]) and not any(i[-1].isdigit() for _, i in pairs)


def _held(folders: Sequence[Place], depth: int, name: str, level: int) -> set[str]:
    """The classes below the folders of a name."""
    return {parts[level] for parts in folders if parts[depth] == name}


def _typed(names: Sequence[str], classes: Mapping[str, set[str]]) -> str:
    """What is typed for folders above classes: the name of a part of a set, or `*` for all."""
    first, *others = names
    if not others:
        return first
    repeated = sum(map(len, classes.values())) > len(set().union(*classes.values()))
    if len(names) > _FEW or not repeated:
        return ANY
    by_name = {name.lower(): name for name in names}
    return next((by_name[name] for name in _JUDGED_ON if name in by_name), first)
