"""The images of an archive or a shard, which is read in place."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from zsntta_cli.datasets.readers.archives import images_among, open_archive
from zsntta_cli.datasets.readers.members import Member
from zsntta_cli.detection.sources.item import LARGEST, PHOTOS, Content, Item, content_of


def members(path: Path) -> list[Item]:
    """The images of an archive by the parts of their paths, as its folder would have them.

    Raises:
        DatasetError: it cannot be read, or is not whole.
    """
    found, read = open_archive(path.name, path)
    return [
        Item("/".join((str(path), *parts)), partial(_content, read, member), path, member.path)
        for parts, member in images_among(found, PHOTOS).items()
    ]


def _content(read: Callable[[Member], bytes], member: Member) -> Content:
    if member.size > LARGEST:
        raise OSError(f"{member.size:,} bytes are no image")
    return content_of(read(member))
